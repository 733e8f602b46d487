custom_imports = dict(imports=["digits"], allow_failed_imports=False)
default_scope = "mmengine"
model = dict(type="DigitsNet", width=32)
train_dataloader = dict(
    batch_size=64,
    num_workers=0,
    dataset=dict(type="Digits"),
    sampler=dict(type="DefaultSampler", shuffle=True),
    collate_fn=dict(type="default_collate"),
)
train_cfg = dict(by_epoch=True, max_epochs=12)
optim_wrapper = dict(optimizer=dict(type="SGD", lr=0.05, momentum=0.9))
default_hooks = dict(
    checkpoint=dict(type="CheckpointHook", interval=1), logger=dict(type="LoggerHook", interval=10)
)
randomness = dict(seed=0)
work_dir = "work_dirs/digits"
