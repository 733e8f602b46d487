"""Commands that a person can copy, of each verb; tests parse each of them."""

from __future__ import annotations

# What stands behind a verb without a flag before it.
FREE_WORDS = {"grid": "CONFIG KEY=VALUES ...", "logs": "CELL", "triage": "LOG"}

EXAMPLES = {
    "demo": ("demo",),
    "init": ("init", "init --script train.py --yes"),
    "plan": ("plan", "plan -p autodl"),
    "smoke": ("smoke", "smoke --cell seg_baseline"),
    "rehearse": ("rehearse", "rehearse --cell seg_baseline --kills 3"),
    "grid": (
        "grid configs/base.yaml lr=1e-3,3e-4 seed=0..2",
        "grid configs/base.yaml lr=1e-3,3e-4 --task seg --write",
    ),
    "split": ("split", "split --speed box-a=2 --write"),
    "push": ("push", "push --mixed"),
    "launch": ("launch -p autodl", "launch --box box-a"),
    "move": ("move --cell seg_baseline --queue queue_2",),
    "drain": ("drain", "drain --queue queue_2"),
    "stop": ("stop", "stop --box box-a"),
    "status": ("status", "status --json"),
    "watch": ("watch", "watch --every 30s"),
    "board": ("board --serve", "board --serve --port 8080", "board --to /var/www/run.html"),
    "tb": ("tb",),
    "logs": ("logs seg_baseline -f", "logs seg_baseline --lines 500"),
    "explain": ("explain -p autodl", "explain --cell seg_baseline"),
    "triage": ("triage train.log", "triage slurm-81.out --rc 137 --json", "triage train.log --add"),
    "runs": ("runs",),
    "audit": ("audit -p autodl", "audit --box box-a"),
    "notify": ("notify --test", "notify --test --from box-a --only feishu"),
    "listen": ("listen", "listen --port 9000"),
    "pull": ("pull", "pull --cell seg_baseline"),
    "verify": ("verify", "verify --allow-pickle seg_baseline/model.pkl"),
    "report": ("report", "report --to latex --metric psnr --baseline seg_baseline"),
    "export": ("export --to tensorboard", "export --to wandb --out wandb-ablation"),
    "repair": ("repair", "repair --put-back"),
    "down": ("down", "down --abandon seg_baseline --because 'no memory at any batch size'"),
    "check-profiles": ("check-profiles",),
}
