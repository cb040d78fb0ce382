"""Two pods of which the second fails in the first attempt, as told: with an exit code, by a signal, or when it is taken away."""

import os
import signal
import sys
import time

how = sys.argv[1]
print("begins", flush=True)
if os.environ["JOBSET_RESTART_ATTEMPT"] == "0":
    if how != "taken" and os.environ["RANK"] == "1":
        time.sleep(0.5)
        if how.isdigit():
            os._exit(int(how))
        os.kill(os.getpid(), getattr(signal, how))
    time.sleep(600)
