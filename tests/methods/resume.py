"""A run that is stopped after its second epoch and resumed, beside one that was not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import fewtags
from fewtags.training.callbacks import EpochFiles
from tests.conftest import TINY


class StopError(Exception):
    pass


def resumes_to_the_same_result(method: str, data: Path, folder: Path, **settings) -> pd.DataFrame:
    """Asserts that all saved tensors and the history agree to the last bit; returns the history."""
    settings = TINY | {"known": 0.5, "method": method} | settings
    whole = fewtags.train(data, out=folder / "whole", **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochFiles, "on_train_epoch_end", _stop_after_the_second(EpochFiles.on_train_epoch_end))
        with pytest.raises(StopError):
            fewtags.train(data, out=folder / "stopped", **settings)
    assert not (folder / "stopped" / "model.safetensors").exists()
    resumed = fewtags.train(data, out=folder / "stopped", resume=True)
    one, two = (load_file(run / "model.safetensors") for run in (whole, resumed))
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []
    histories = [pd.read_csv(run / "history.csv").drop(columns="seconds") for run in (whole, resumed)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)
    return histories[0]


def _stop_after_the_second(original):
    def stop(self, trainer, module):
        original(self, trainer, module)
        if trainer.current_epoch == 1:
            raise StopError

    return stop
