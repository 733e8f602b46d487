"""transformers' Trainer with its own arguments, on a tiny random model."""

import time
from dataclasses import dataclass, field

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    HfArgumentParser,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


@dataclass
class ModelArguments:
    width: int = field(default=16, metadata={"help": "size of the hidden layers"})


class Slow(TrainerCallback):
    def on_step_end(self, args, state, control, **more):
        time.sleep(0.05)


class Text(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, at):
        ids = (torch.arange(16) * 7 + at) % 50
        return {"input_ids": ids, "labels": ids}


def main():
    model_args, args = HfArgumentParser(
        (ModelArguments, TrainingArguments)
    ).parse_args_into_dataclasses()
    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=model_args.width, n_layer=1, n_head=2)
    trainer = Trainer(
        model=GPT2LMHeadModel(config), args=args, train_dataset=Text(), callbacks=[Slow()]
    )
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
