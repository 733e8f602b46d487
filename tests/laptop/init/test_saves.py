from __future__ import annotations

import ast
from collections.abc import Collection

import pytest

from boxcar.laptop.init import paths, saves
from boxcar.laptop.init.reached import Part
from boxcar.laptop.init.saves import Saved


def named(source: str) -> list[tuple[str, bool]]:
    return [(saved.name, saved.is_in_cwd) for saved in read(source)]


def read(source: str, settings: Collection[str] = ()) -> tuple[Saved, ...]:
    found, _ = saves.read_saves(paths.read_paths([Part("t.py", ast.parse(source))], (), settings))
    return found


@pytest.mark.parametrize(
    ("call", "name", "is_in_cwd"),
    [
        ("torch.save(model, 'best.pt')", "best.pt", True),
        ("torch.save(model, './out/best.pt')", "out/best.pt", True),
        ("torch.save(model, os.path.join(args.out, 'best.pt'))", "best.pt", False),
        ("torch.save(model, Path(args.out) / 'ckpt' / f'step_{n}.pt')", "ckpt/step_*.pt", False),
        ("torch.save(model, args.out + '/epoch_%03d.pth' % n)", "epoch_*.pth", False),
        ("torch.save(model, '%s/netG_%d.pth' % (opt.outf, n))", "netG_*.pth", False),
        ("torch.save(model, 'e_{}_{:.2f}.ckpt'.format(a, b))", "e_*_*.ckpt", True),
        ("name = f'm_{n}.pt'\ntorch.save(model, os.path.join(out, name))", "m_*.pt", False),
        ("def save(s, filename='checkpoint.pth.tar'):\n torch.save(s, filename)",
         "checkpoint.pth.tar", True),
        ("shutil.copyfile(name, 'model_best.pth.tar')", "model_best.pth.tar", True),
        ("json.dump(x, open(os.path.join(out, 'metrics.json'), 'w'))", "metrics.json", False),
        ("(out / 'metrics.json').write_text(text)", "metrics.json", False),
        ("with (out / 'log.csv').open('a') as f: ...", "log.csv", False),
        ("df.to_csv(f'{out}/scores.csv')", "scores.csv", False),
        ("save_file(tensors, filename=out / 'model.safetensors')", "model.safetensors", False),
        ("joblib.dump(model, 'model.pkl')", "model.pkl", True),
        ("os.replace('new', os.path.join(out, 'checkpoint.json'))", "checkpoint.json", False),
        ("accelerator.save_state(os.path.join(out, f'epoch_{n}'))", "epoch_*/", False),
        ("utils.save_on_master(state, os.path.join(args.output_dir, f'model_{n}.pth'))",
         "model_*.pth", False),
        ("utils.save_on_master({'epoch': n}, checkpoint_path)\ncheckpoint_path = out / 'c.pth'",
         "c.pth", False),
        ("save_checkpoint(state, is_best, filename='ckpt.pth.tar')", "ckpt.pth.tar", True),
        ("torch.save(net, f'runs/{name}/{args.exp}.model')", "runs/*/*.model", True),
        ("fabric.save(os.path.join(out, 'state.ckpt'), state)", "state.ckpt", False),
    ],
)  # fmt: skip
def test_the_name_of_what_is_saved_is_read(call: str, name: str, is_in_cwd: bool) -> None:
    assert named(call) == [(name, is_in_cwd)]


@pytest.mark.parametrize(
    "call",
    [
        "torch.load('best.pt')",
        "open('in.json')",
        "open('in.json', 'rb')",
        "torch.save(model, path)",
        "torch.save(model, os.path.join(out, 'last.pt.tmp'))",
        "open('log.txt')",
        "torch.save(model, '/mnt/best.pt')",
        "torch.save(model, '../best.pt')",
        "torch.save(model)",
        "model.save_pretrained(out)",
        "utils.save_on_master(state, args.output_dir)",
        "plt.savefig(os.path.join(out, 'loss.png'))",
        "saved = is_saved(state, 'last.pt')",
    ],
)
def test_what_is_no_result_or_has_no_name_is_left_out(call: str) -> None:
    assert named(call) == []


def test_a_text_is_a_result_where_nothing_else_is_written() -> None:
    text = "with open(os.path.join(out, 'result.txt'), 'w') as f: ..."
    assert named(text) == [("result.txt", False)]
    assert named(f"{text}\ntorch.save(model, 'best.pt')") == [("best.pt", True)]
    assert named(f"{text}\ntorch.save(model, unknown)") == []


def test_a_name_that_the_caller_replaces_is_where_it_is_told_to_write() -> None:
    source = "out_dir = 'out'\ntorch.save(x, os.path.join(out_dir, 'ckpt.pt'))"
    assert [(each.name, each.root) for each in read(source)] == [("out/ckpt.pt", "")]
    assert [(each.name, each.root) for each in read(source, {"out_dir"})] == [
        ("ckpt.pt", "out_dir")
    ]


def test_a_name_that_is_made_of_itself_ends() -> None:
    [(name, _)] = named("name = name + '.pt'\ntorch.save(x, name)")
    assert name.startswith("*.pt")
