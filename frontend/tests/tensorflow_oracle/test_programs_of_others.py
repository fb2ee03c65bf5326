"""Programs that others wrote for TensorFlow 1, run unchanged by `python -m timberframe.compat run`."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = ["good", "great", "fine", "happy", "lovely", "bright", "warm", "kind"]
BAD = ["bad", "awful", "poor", "sad", "ugly", "dark", "cold", "mean"]
OTHER = ["the", "a", "film", "day", "food", "song", "book", "it", "was", "very", "so", "and", "really", "quite"]
CONFIG = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 32,
    "initializer_range": 0.02, "intermediate_size": 64, "max_position_embeddings": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "type_vocab_size": 2, "vocab_size": 5 + len(GOOD + BAD + OTHER),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vocabulary, the sizes of a small network, and sentences that say whether something is good."""
    draw = random.Random(0)

    def sentences(count: int) -> str:
        lines = []
        for _ in range(count):
            good = draw.random() < 0.5
            words = [*draw.choices(OTHER, k=6), draw.choice(GOOD if good else BAD)]
            draw.shuffle(words)
            lines.append(f"source\t{int(good)}\t*\t{' '.join(words)}\n")
        return "".join(lines)

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *OTHER]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "train.tsv").write_text(sentences(400))
    (tmp_path / "dev.tsv").write_text(sentences(100))
    documents = [[" ".join(draw.choices(GOOD + BAD + OTHER, k=7)) for _ in range(2)] for _ in range(3)]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(lines) for lines in documents) + "\n")
    return tmp_path


def run_bert(program: str, **flags: object) -> None:
    """Runs a program of the package with these flags."""
    found = importlib.util.find_spec("bert")
    if found is None or not found.submodule_search_locations:
        pytest.skip("bert-tensorflow is not installed")
    path = Path(next(iter(found.submodule_search_locations))) / program
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    command = [sys.executable, "-m", "timberframe.compat", "run", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def results(path: Path) -> dict[str, float]:
    """Returns what a program wrote of its evaluation, by name."""
    return {name: float(value) for name, value in (line.split(" = ") for line in path.read_text().splitlines())}


def test_bert_learns_to_classify_sentences(folder: Path) -> None:
    run_bert(
        "run_classifier.py", task_name="cola", do_train=True, do_eval=True, data_dir=folder, output_dir=folder / "out",
        vocab_file=folder / "vocab.txt", bert_config_file=folder / "config.json", max_seq_length=16,
        train_batch_size=16, learning_rate=1e-3, num_train_epochs=6,
    )  # fmt: skip
    found = results(folder / "out" / "eval_results.txt")
    assert found["global_step"] == 150
    assert found["eval_accuracy"] > 0.95


def test_bert_is_pretrained_on_sentences_that_its_own_program_prepares(folder: Path) -> None:
    sizes = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    records = folder / "records"
    run_bert(
        "create_pretraining_data.py", input_file=folder / "text.txt", output_file=records,
        vocab_file=folder / "vocab.txt", dupe_factor=5, **sizes,
    )  # fmt: skip
    run_bert(
        "run_pretraining.py", input_file=records, output_dir=folder / "out", do_train=True, do_eval=True,
        bert_config_file=folder / "config.json", train_batch_size=8, num_train_steps=80, num_warmup_steps=10,
        learning_rate=2e-3, max_eval_steps=10, **sizes,
    )  # fmt: skip
    found = results(folder / "out" / "eval_results.txt")
    assert found["global_step"] == 80
    assert found["masked_lm_accuracy"] > 0.4  # by chance it is 1 of 35 words
