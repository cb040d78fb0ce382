"""The training of finetune_ddp.py: a small language model under DistributedDataParallel, on CPUs, over gloo.

torchrun starts it in every process of every node. It reads the text of Python's own language reference, which ships with
Python; rank 0 saves a checkpoint every few steps, and a set that is restarted resumes from the newest complete one. With
--evaluate it is a program of one process that says how well a trained model does on text that training has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from jobset_steps import worker

CONTEXT = 48
"""Bytes that the model sees before the one it foretells."""
EVERY = 10
"""Steps from one checkpoint to the next."""


class Bytes(nn.Module):
    """Foretells the next byte of a text from the ones before it."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits of shape (batch, length, 256) for bytes of shape (batch, length)."""
        return self.head(self.memory(self.embedding(text))[0])


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    """(text to train on, text to evaluate on), as bytes; the last tenth is kept for evaluation."""
    from pydoc_data import topics

    text = "\n".join(topics.topics[name] for name in sorted(topics.topics)).encode()
    numbers = torch.tensor(list(text), dtype=torch.long)
    cut = len(numbers) * 9 // 10
    return numbers[:cut], numbers[cut:]


def loss_of(model: nn.Module, text: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Mean loss, in nats a byte, over windows of the text that begin at `starts`."""
    windows = torch.stack([text[start : start + CONTEXT + 1] for start in starts.tolist()])
    logits = model(windows[:, :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, 256), windows[:, 1:].reshape(-1))


def train(options: argparse.Namespace) -> None:
    """Train with all the others, and let rank 0 write the model."""
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.set_num_threads(1)
    torch.manual_seed(7)
    text, _ = texts()
    bare = Bytes()
    optimizer = torch.optim.Adam(bare.parameters(), lr=3e-3)
    checkpoints = worker.Checkpoints(keep=2)
    # All ranks start from what rank 0 finds, whatever each of them sees of the file system.
    found = [checkpoints.newest() if rank == 0 else None]
    dist.broadcast_object_list(found, src=0)
    done = 0
    if (newest := found[0]) is not None:
        saved = torch.load(newest.path)
        bare.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
        if rank == 0:
            print(f"resumed from step {done}", flush=True)
    model = DistributedDataParallel(bare)
    resumed = done
    loss = torch.tensor(0.0)
    with worker.terminating() as ending:
        for step in range(done + 1, options.steps + 1):
            # Every rank draws its own windows; the draw is the same whether or not a restart came in between.
            draw = torch.Generator().manual_seed(step * dist.get_world_size() + rank)
            starts = torch.randint(len(text) - CONTEXT - 1, (16,), generator=draw)
            optimizer.zero_grad()
            loss = loss_of(model, text, starts)
            loss.backward()
            optimizer.step()
            if step % EVERY == 0 and rank == 0:
                state = {"model": bare.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                with ending.finishing():  # a SIGTERM waits until the checkpoint is whole
                    checkpoints.save(step, lambda path, state=state: torch.save(state, path))
                print(f"step {step}/{options.steps}, loss {loss.item():.3f}", flush=True)
            if worker.context().attempt == 0 and (rank, step) == (options.crash_rank, options.crash_at_step):
                print(f"rank {rank} crashes in step {step}", flush=True)
                os._exit(1)  # as a crash does: nothing is cleaned up
    if rank == 0:
        options.model.parent.mkdir(parents=True, exist_ok=True)
        torch.save(bare.state_dict(), options.model)
        worker.report_metrics(
            {
                "steps": options.steps,
                "loss": round(loss.item(), 4),
                "resumed_from": resumed,
                "world_size": dist.get_world_size(),
            }
        )
    dist.barrier()
    dist.destroy_process_group()


def evaluate(options: argparse.Namespace) -> None:
    """Write the perplexity of the model on text that it has not seen, as JSON."""
    torch.manual_seed(7)
    model = Bytes()
    model.load_state_dict(torch.load(options.model))
    _, text = texts()
    with torch.no_grad():
        starts = torch.arange(0, len(text) - CONTEXT - 1, max(1, len(text) // 400))
        perplexity = math.exp(loss_of(model, text, starts).item())
    print(f"perplexity {perplexity:.2f} a byte on {len(text):,} bytes", flush=True)
    options.evaluate.write_text(json.dumps({"perplexity": round(perplexity, 3)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", type=Path, required=True, help="where the trained model is written or read"
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--crash-rank", type=int, default=-1)
    parser.add_argument("--crash-at-step", type=int, default=0)
    parser.add_argument("--evaluate", type=Path, metavar="FILE", help="write the model's perplexity there")
    options = parser.parse_args()
    evaluate(options) if options.evaluate else train(options)


if __name__ == "__main__":
    main()
