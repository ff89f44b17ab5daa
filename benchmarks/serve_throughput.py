"""What batching is worth: the same images through the server's app one by one and in batches, in this process.

python benchmarks/serve_throughput.py RUN_OR_FILE [--images 64] [--clients 32] [--threads 1]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from pathlib import Path

import httpx2
import numpy as np
from PIL import Image

from fewtags.serve.app import create_app
from fewtags.serve.limits import Limits
from fewtags.serve.models import Model, open_model


def photographs(count: int) -> list[bytes]:
    """JPEGs of 640 x 480 pixels: smooth noise, about as long as a photograph of that size."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8))
        files.append(io.BytesIO())
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(files[-1], "JPEG", quality=90)
    return [file.getvalue() for file in files]


async def seconds_each(
    model: Model, files: list[bytes], clients: int, max_batch: int
) -> tuple[float, list[float]]:
    """Seconds for all of them, and for each, with `clients` clients that send their next image once answered."""
    app = create_app(model, Limits(max_batch=max_batch))
    waiting, latencies = list(files), []
    transport = httpx2.ASGITransport(app)

    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport, timeout=60) as client:
        while (await client.get("http://fewtags/health")).status_code != 200:
            await asyncio.sleep(0.05)

        async def one_client() -> None:
            while waiting:
                content, started = waiting.pop(), time.perf_counter()
                answer = await client.post("http://fewtags/predict", content=content)
                answer.raise_for_status()
                latencies.append(time.perf_counter() - started)

        started = time.perf_counter()
        await asyncio.gather(*(one_client() for _ in range(clients)))
        return time.perf_counter() - started, latencies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    model, files = open_model(given.source, threads=given.threads), photographs(given.images)
    card = model.card
    print(
        f"{model.runtime}, {card.method} on {card.backbone}, {card.image_size}², {len(card.categories)} categories"
    )
    print("| clients | batches of at most | images/s | p50 | p95 | CPU time an image |\n|---|---|---|---|---|---|")
    for clients, max_batch in ((1, 1), (given.clients, 1), (given.clients, 8), (given.clients, 32)):
        busy = time.process_time()
        total, latencies = asyncio.run(seconds_each(model, files, clients, max_batch))
        busy = 1000 * (time.process_time() - busy) / (len(files) + 1 + max_batch)  # the warm-up computes too
        middle, slow = 1000 * np.quantile(latencies, (0.5, 0.95))
        speed = len(files) / total
        print(f"| {clients} | {max_batch} | {speed:.1f} | {middle:.0f} ms | {slow:.0f} ms | {busy:.0f} ms |")


if __name__ == "__main__":
    main()
