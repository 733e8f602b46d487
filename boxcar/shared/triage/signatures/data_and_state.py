"""Checkpoints, numbers that are none, and data. Data."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import row

_LOADS = (
    "load what it was saved with: strip the wrapper's prefix, or take the same model",
    "按保存时的方式加载：去掉包装前缀，或使用同一模型",
)

SIGNATURES = (
    row(
        "W-ONLY",
        Course.FIX_CODE,
        r"Weights only load failed|Unsupported global|WeightsUnpickler error"
        r"|weights_only\b[^\n]{0,80}(?:fail|error|default)",
        (
            "the script cannot load its own checkpoint with weights_only=True",
            "脚本无法以 weights_only=True 加载自己的检查点",
        ),
        (
            "change how it loads its checkpoint; a script that is not to be changed takes "
            "env: {TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: '1'}",
            "修改读取检查点的方式；不能改的脚本可设 env: {TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: '1'}",
        ),
    ),
    row(
        "C2",
        Course.FIX_DATA,
        r"PytorchStreamReader failed|unexpected EOF, expected|pickle data was truncated"
        r"|invalid header or archive is corrupted|failed finding central directory"
        r"|file in archive is not in a subdirectory"
        r"|SafetensorError|HeaderTooSmall|InvalidHeader|MetadataIncompleteBuffer"
        r"|EOFError: Ran out of input|UnpicklingError|not a ZIP archive"
        r"|[Cc]heckpoint[^\n]{0,80}(?:corrupt|truncated|incomplete)"
        r"|Unable to load weights from|invalid magic number; corrupt file|invalid load key",
        ("a checkpoint is cut off or damaged", "检查点被截断或损坏"),
        (
            "nothing is deleted: the next older one is tried; give up the damaged one by hand",
            "不会删除任何文件：会试更早的一个；损坏的请手动处理",
        ),
    ),
    row(
        "C18",
        Course.FIX_CODE,
        r"(?:Missing|Unexpected) key\(s\) in state_dict|Error\(s\) in loading state_dict"
        r"|size mismatch for [\w.]+|metadata tree structures do not match|when loading weights"
        r"|ignore_mismatched_sizes|Could not locate class|Unknown layer: "
        r"|loaded state dict (?:contains a parameter group"
        r"|has a different number)|[Mm]issing (?:keys? in|from) (?:the )?(?:checkpoint|state)"
        r"|^KeyError: '(?:\w*state_dict|optimizer_states|pytorch-lightning_version|ema)'"
        r"|^AttributeError: Can't get attribute ",
        ("the checkpoint is of another model than the script builds", "检查点与脚本构建的模型不符"),
        _LOADS,
    ),
    row(
        "PATH",
        Course.FIX_CONFIG,
        r"FileExistsError|\[Errno (?:17|22|36|39|40)\]|Parent directory \S* does not exist"
        r"|Directory not empty|File name too long|Too many levels of symbolic links"
        r"|AF_UNIX path too long|unable to open database file",
        ("a path cannot be made as the script asks for it", "脚本要求的路径无法创建"),
        (
            "write into $BOXCAR_OUT, which is another folder for each cell",
            "写到 $BOXCAR_OUT，每个 cell 的目录都不同",
        ),
    ),
    row(
        "WEIGHTS",
        Course.FIX_DATA,
        r"(?:No such file|(?:not|n't) exists?\b|not found)[^\n]{0,160}(?:[Pp]re-?train|backbone"
        r"|imagenet"
        r"|model_?zoo)|(?:[Pp]re-?train\w*|[Bb]ackbone)[ _](?:model|weights?|checkpoint)[^\n]{0,80}"
        r"(?:No such file|(?:not|n't) exists?\b|not found)",
        ("the weights to start from are not there", "起始权重文件不存在"),
        (
            "put them on the box, below $BOXCAR_DATA_DIR, or correct the path",
            "放到机器上的 $BOXCAR_DATA_DIR 下，或改正路径",
        ),
    ),
    row(
        "C17",
        Course.ASK,
        r"(?:(?<!Model)[Cc]heckpoint|resume|\.(?:pth?|ckpt|safetensors"
        r"|bin|weights\.h5)['\"]?)[^\n]{0,120}(?:(?:can )?not (?:be )?found|does not exist"
        r"|No such file)"
        r"|No such file or directory[^\n]{0,160}(?:\.(?:pth?|ckpt|safetensors)\b|/\.metadata')"
        # In the words of accelerate, orbax, keras and DeepSpeed.
        r"|Tried to find \S+ but folder does not exist|^FileNotFoundError: No steps found in "
        r"|File not found: filepath=|Unable to find 'latest' file"
        # What is no folder here is looked for on the hub, where a path is no name.
        r"|Repo id must [^\n]{0,120}: '[^'\n]*(?:checkpoint|ckpt)"
        r"|[Ff]ailed to load (?:the )?checkpoint|(?:[Cc]an't|[Uu]nable to"
        r"|[Cc]ould not) find (?:a valid )?checkpoint|not find [^\n]{0,40}in the checkpoint"
        r"|no file named \S+ found|no file named (?:pytorch_model|model)\."
        r"|TensorSliceReader constructor"
        r"|Error: No (?:valid )?checkpoints? found",
        ("the checkpoint to resume from is not there", "要恢复的检查点不存在"),
        (
            "say where the run is to start: put the file back, or begin anew",
            "请决定从哪里开始：放回文件，或重新开始",
        ),
    ),
    row(
        "DATANAN",
        Course.FIX_DATA,
        r"Input (?:\w+ )?contains (?:NaN|infinity)|data contains? (?:NaN|nan)"
        r"|NaN in (?:the )?(?:data|input|target|label)",
        ("the data holds values that are no numbers", "数据中含有非数值"),
        ("find the sample and take it out, or fill it", "找到该样本并移除或填补"),
    ),
    row(
        "ANOM",
        Course.FIX_CODE,
        r"Function '\w+Backward\d*' returned nan values",
        ("an operation gave NaN in the backward pass", "某算子在反向传播中产生 NaN"),
        ("the traceback above names the operation", "上方的 traceback 指出了该算子"),
    ),
    row(
        "SCALER",
        Course.ASK,
        r"Minimum loss scale reached|[Ll]oss scale[^\n]{0,60}(?:minimum|too small|below)"
        r"|Current loss scale already at minimum",
        ("fp16 overflows at every step", "fp16 每步都溢出"),
        (
            "train in bf16, or with a smaller learning rate: that is another experiment, so "
            "it is yours to say",
            "改用 bf16 或更小学习率：这改变实验，需由你决定",
        ),
    ),
    row(
        "NAN",
        Course.RESUME_SAME,
        r"[Ll]oss(?: value)?(?: is|[=: ]+| became| has become| value| went)? ?\(?(?:nan|inf|NaN|Inf"
        r"|-inf)\b|(?:NaN|nan|[Nn]on-?finite|inf)[^\n]{0,30}(?:loss|gradient|grad"
        r"|values? (?:in|detected|encountered))|[Ll]oss is (?:not finite|\{?nan|tensor\(nan)"
        r"|FloatingPointError|[Nn]an loss|[Gg]radient (?:norm )?(?:is|contains) (?:nan|inf"
        r"|non-finite)"
        r"|contains (?:either )?[`'\"]?(?:inf|nan|NaN)\b|[Hh]as NaN\b|NanError"
        r"|NaNs? (?:or [Ii]nf\w* )?(?:detected|found|encountered)"
        r"|[Dd]etected (?:nan|inf|NaN|non-finite)|found invalid values:|tensor\(\[?\[?nan"
        r"|TerminateOnNaN|linalg[.\w]*: [^\n]{0,160}(?:positive-definite|converge|singular)"
        r"|expects all elements of std >= 0",
        ("the training diverged: a loss or gradient is not finite", "训练发散：损失或梯度非有限值"),
        (
            "it resumes once from the last finite checkpoint; at the same step again it is "
            "the data, at another the learning rate or precision",
            "会从最近的有限检查点恢复一次；若同一步再现是数据问题，不同步则是学习率或精度",
        ),
        waits_s=(1.0,),
    ),
    row(
        "DP4",
        Course.FIX_DATA,
        r"stack expects each tensor to be equal size|Cannot batch tensors with different"
        r"|each element in list of batch should be of equal size"
        r"|Unable to create tensor, you should probably activate truncation"
        r"|batch must contain tensors"
        r"|[Tt]rying to resize storage that is not resizable",
        (
            "samples of different sizes cannot be put into one batch",
            "不同大小的样本无法组成一个批次",
        ),
        (
            "pad or crop them in the dataset, or give a collate_fn",
            "在数据集中补齐或裁剪，或提供 collate_fn",
        ),
    ),
    row(
        "DP6",
        Course.FIX_CODE,
        r"[Cc]an't (?:get local object|get (?:object|attribute) [^\n]{0,80}on <module|pickle)"
        r"|[Cc]annot pickle|PicklingError",
        ("something that workers get cannot be pickled", "传给 worker 的对象无法序列化"),
        (
            "no lambda, open file or local class in a dataset with workers",
            "带 worker 的数据集中不要有 lambda、打开的文件或局部类",
        ),
    ),
    row(
        "DP8",
        Course.FIX_CODE,
        r"Expected more than 1 value per channel when training",
        ("the last batch has one sample", "最后一个批次只有一个样本"),
        ("drop_last=True for the training's loader", "训练的 loader 设 drop_last=True"),
    ),
    row(
        "U37",
        Course.FIX_CODE,
        r"Image size of [^\n]{0,60} is too large|less than 2\^16|DecompressionBombError",
        ("a picture is too large to be drawn", "图片过大，无法绘制"),
        ("draw fewer panels, or with a smaller dpi", "减少子图，或降低 dpi"),
    ),
    row(
        "BADFILE",
        Course.FIX_DATA,
        r"sentencepiece_processor|could not parse ModelProto|_csv\.Error|EmptyDataError"
        r"|[Hh]ash mismatch|can't open/read file|Unknown image file format|Can't parse serialized"
        r"|\[Op:Decode\w+\]|Error loading audio|invalid hash value"
        r"|cannot convert float NaN to integer"
        r"|RasterioIOError|[Ff]ile not found or corrupted|not recognized as a supported file format"
        r"|allow_pickle=False|Couldn't cast\b"
        r"|UnidentifiedImageError|cannot identify image file|image file is truncated"
        r"|broken (?:PNG|data stream)|UnicodeDecodeError|(?<!util\.)ParserError|BadZipFile"
        r"|BadGzipFile"
        r"|ReadError: (?:file could not|not a gzip|unexpected end)|Arrow\w*(?:Invalid|Error)\b"
        r"|cv2\.error|\(-215:|InvalidDataError|DECORDError|moov atom not found"
        r"|lmdb\.(?!MapFull)\w*Error(?![^\n]*No such)"
        r"|Invalid data found when processing|ParseError: |No data left in file"
        r"|Failed to interpret file|Not a gzipped file|[Nn]o magic bytes|Parquet magic bytes"
        r"|tarfile\.\w*Error|DataLossError"
        r"|(?<!0 )\b[Cc]orrupt(?:ed)?\b(?!/)[^\n]{0,40}\b(?:data|record|block|stream|archive)\b"
        r"|[Uu]nable to (?:synchronously )?open (?:file|object)(?![^\n]*errno = 2\b)"
        r"[^\n]{0,120}(?:truncated|signature|h5)|truncated file"
        r"|DatasetGenerationError|DatasetGenerationCastError"
        r"|NonMatchingSplitsSizesError|ExpectedMoreSplits|NonMatchingChecksumError"
        r"|ChecksumError|zlib\.error|[Ll]abel class \d+ exceeds|LibsndfileError|JSONDecodeError"
        r"|mmap length is greater than file size"
        r"|(?<!0 )[Cc]orrupt(?:ed)? (?:JPEG|image|file|data)|invalid (?:distance|block|stored)"
        r"|Error -3 while decompressing|premature end of|Compressed file ended before"
        r"|[Cc]an't read data \(|DataLoader.{0,40}corrupt",
        ("a file of the data cannot be read", "某个数据文件无法读取"),
        (
            "take it out or fetch it again; the traceback names it",
            "请移除或重新获取；traceback 中有文件名",
        ),
    ),
    row(
        "NODATA",
        Course.FIX_DATA,
        r"num_samples should be a positive integer|n(?:um)?_samples=0|set will be empty"
        r"|[Dd]ataset (?:is empty"
        r"|not found|\S{1,80} not found)|Found 0 (?:files|images|samples)|Found no valid file"
        r"|[Nn]o (?:images|labels|samples|(?:training )?data|training files|data files?"
        r"|files) (?:(?:were )?found|in)\b|[Dd]ata\w* [^\n]{0,80} is empty|empty (?:dataset"
        r"|dataloader)|Couldn't find (?:any data file|a dataset script"
        r"|the directory)|DataFilesNotFoundError|DatasetNotFoundError|EmptyDatasetError"
        r"|(?:[Dd]ata(?:set)?|[Ii]mages?|[Ll]abels?|[Aa]nnotations?)\b[^\n]{0,80}(?:does not exist"
        r"|(?:not|n't) exists?\b|is missing)|[Ii]mages? [Nn]ot [Ff]ound|Couldn't find class folder"
        r"|Total length of .{0,30}loader.{0,20} is zero|corresponds to no data"
        r"|contains no samples|at least one example when writing|input ran out of data"
        r"|Column \S+ not in the dataset",
        ("there is no data where the script looks", "脚本查找的位置没有数据"),
        (
            "put it on the box, below $BOXCAR_DATA_DIR, or correct the path",
            "放到机器上的 $BOXCAR_DATA_DIR 下，或改正路径",
        ),
    ),
    row(
        "NOFILE",
        Course.FIX_DATA,
        r"FileNotFoundError|[Cc]annot find (?:\w+ )?file"
        r"|[Cc](?:annot|an't|ouldn't|ould not) open (?:the )?file\b"
        r"|\[Errno 2\]|No such file or directory|os error 2\b"
        r"|\.\w{1,12} cannot be opened|Error: \S+\.\w{1,12}['\"]? (?:was |is )?(?:not found"
        r"|does not exist)|NotADirectoryError|IsADirectoryError|没有那个文件或目录",
        ("a file that the script opens is not there", "脚本要打开的文件不存在"),
        (
            "put it there, or correct the path: paths begin at the code folder, data at "
            "$BOXCAR_DATA_DIR",
            "放到该处或改正路径：路径从代码目录算起，数据在 $BOXCAR_DATA_DIR",
        ),
        is_general=True,
    ),
)
