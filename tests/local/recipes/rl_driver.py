"""A driver that hears once from every actor and then is done; it may be told to crash in the first attempt."""

import os
import socket

workers, name = int(os.environ["JOBSET_STEPS_WORLD_SIZE"]) - 1, os.environ["JOBSET_STEPS_COORDINATOR"]
with socket.create_server((name, int(os.environ["JOBSET_STEPS_PORT"]))) as server:
    print("driver listens", flush=True)
    calls = [server.accept()[0] for _ in range(workers)]
    heard = sorted(call.makefile().readline().strip() for call in calls)
print("heard " + " ".join(heard), flush=True)
if os.environ["JOBSET_RESTART_ATTEMPT"] == "0" and os.environ.get("CRASHES"):
    os._exit(3)
