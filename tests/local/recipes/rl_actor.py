"""An actor that calls the driver once, however long that takes to listen, and never ends by itself."""

import os
import socket
import time

address = (os.environ["JOBSET_STEPS_COORDINATOR"], int(os.environ["JOBSET_STEPS_PORT"]))
print("actor starts", flush=True)
end = time.monotonic() + 60
while True:
    try:
        call = socket.create_connection(address)
        break
    except OSError:
        assert time.monotonic() < end
        time.sleep(0.05)
call.sendall(f"actor-{os.environ['JOBSET_STEPS_JOB_INDEX']}-{os.environ['FLAVOUR']}\n".encode())
time.sleep(600)  # an actor never ends by itself
