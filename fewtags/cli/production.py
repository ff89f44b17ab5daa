"""A trained model elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fewtags.cli.shared import Device, Run, console


def export(
    run: Run,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX file to write.")],
) -> None:
    """Write RUN's model to an ONNX file, and check that it gives what `predict` gives."""
    from fewtags.export import export_onnx

    done = export_onnx(run, onnx)
    console.print(
        f"{done.path}: {done.megabytes:.1f} MB; over {done.images} random images its probabilities differ from "
        f"`fewtags predict` by at most {done.difference:.1e}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def serve(
    source: Annotated[
        Path, typer.Argument(metavar="RUN_OR_FILE", help="A run folder, or an ONNX file made by `fewtags export`.")
    ],
    host: Annotated[str, typer.Option(help="0.0.0.0 for every network; default this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="FEWTAGS_TOKEN", show_envvar=True, help="What clients have to send as bearer token."),
    ] = None,
    without_token: Annotated[
        bool, typer.Option("--without-token", help="Let anyone who reaches another --host use it.")
    ] = False,
    max_batch: Annotated[int, typer.Option(min=1, help="Images computed at a time; a GPU likes 32.")] = 8,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="How long an image waits for others.")] = 5.0,
    max_queue: Annotated[int, typer.Option(min=1, help="Images under way at once; beyond, 503.")] = 128,
    max_images: Annotated[int, typer.Option(min=1, help="Images in one request.")] = 16,
    max_image_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes of one image's file.")] = 10.0,
    max_pixels: Annotated[int, typer.Option(min=1, help="Width times height of one image.")] = 50_000_000,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to receive a request, or answer it.")] = 30.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Cores the model may use; default all.")] = None,
    device: Device = "auto",
) -> None:
    """Tag images over HTTP: POST them to /predict. See also /health, /categories and /metrics."""
    from fewtags.serve.limits import Limits
    from fewtags.serve.run import serve as serve_model

    limits = Limits(max_batch, max_wait_ms, max_queue, max_images, max_image_mb, max_pixels, timeout)
    how: dict[str, Any] = {"token": token, "without_token": without_token, "device": device, "threads": threads}
    serve_model(source, host, port, limits, **how, console=console)
