"""Checkpoints, numbers that are none, and data. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature

_LOADS = mark("load it as it was saved: strip the wrapper's prefix, or use the same model")

SIGNATURES = (
    Signature(
        "W-ONLY",
        Course.FIX_CODE,
        r"Weights only load failed|Unsupported global|WeightsUnpickler error"
        r"|weights_only\b[^\n]{0,80}(?:fail|error|default)",
        mark("the script cannot load its own checkpoint with weights_only=True"),
        mark(
            "change how the script loads it; if you cannot, set env: "
            "{{TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: '1'}}"
        ),
    ),
    Signature(
        "C2",
        Course.FIX_DATA,
        r"PytorchStreamReader failed|unexpected EOF, expected|pickle data was truncated"
        r"|invalid header or archive is corrupted|failed finding central directory"
        r"|file in archive is not in a subdirectory"
        r"|SafetensorError|HeaderTooSmall|InvalidHeader|MetadataIncompleteBuffer"
        r"|EOFError: Ran out of input|UnpicklingError|not a ZIP archive"
        r"|[Cc]heckpoint[^\n]{0,80}(?:corrupt|truncated|incomplete)"
        r"|Unable to load weights from|invalid magic number; corrupt file|invalid load key",
        mark("a checkpoint is truncated or damaged"),
        mark("nothing is deleted: the next older one is tried; remove the damaged one yourself"),
    ),
    Signature(
        "C18",
        Course.FIX_CODE,
        r"(?:Missing|Unexpected) key\(s\) in state_dict|Error\(s\) in loading state_dict"
        r"|size mismatch for [\w.]+|metadata tree structures do not match|when loading weights"
        r"|ignore_mismatched_sizes|Could not locate class|Unknown layer: "
        r"|loaded state dict (?:contains a parameter group"
        r"|has a different number)|[Mm]issing (?:keys? in|from) (?:the )?(?:checkpoint|state)"
        r"|^KeyError: '(?:\w*state_dict|optimizer_states|pytorch-lightning_version|ema)'"
        r"|^AttributeError: Can't get attribute ",
        mark("the checkpoint does not match the model"),
        _LOADS,
    ),
    Signature(
        "PATH",
        Course.FIX_CONFIG,
        r"FileExistsError|\[Errno (?:17|22|36|39|40)\]|Parent directory \S* does not exist"
        r"|Directory not empty|File name too long|Too many levels of symbolic links"
        r"|AF_UNIX path too long|unable to open database file",
        mark("the script asks for a path that cannot be created"),
        mark("write to $BOXCAR_OUT: each cell has its own folder"),
    ),
    Signature(
        "WEIGHTS",
        Course.FIX_DATA,
        r"(?:No such file|(?:not|n't) exists?\b|not found)[^\n]{0,160}(?:[Pp]re-?train|backbone"
        r"|imagenet"
        r"|model_?zoo)|(?:[Pp]re-?train\w*|[Bb]ackbone)[ _](?:model|weights?|checkpoint)[^\n]{0,80}"
        r"(?:No such file|(?:not|n't) exists?\b|not found)",
        mark("the initial weights are missing"),
        mark("put them on the box under $BOXCAR_DATA_DIR, or correct the path"),
    ),
    Signature(
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
        mark("the checkpoint to resume from is missing"),
        mark("decide where to start: restore the file, or start over"),
    ),
    Signature(
        "DATANAN",
        Course.FIX_DATA,
        r"Input (?:\w+ )?contains (?:NaN|infinity)|data contains? (?:NaN|nan)"
        r"|NaN in (?:the )?(?:data|input|target|label)",
        mark("the data contains NaN or infinite values"),
        mark("find the sample and remove or fill it"),
    ),
    Signature(
        "ANOM",
        Course.FIX_CODE,
        r"Function '\w+Backward\d*' returned nan values",
        mark("an operation gave NaN in the backward pass"),
        mark("the traceback above names the operation"),
    ),
    Signature(
        "SCALER",
        Course.ASK,
        r"Minimum loss scale reached|[Ll]oss scale[^\n]{0,60}(?:minimum|too small|below)"
        r"|Current loss scale already at minimum",
        mark("fp16 overflows at every step"),
        mark("use bf16 or a lower learning rate: it changes the experiment, so you decide"),
    ),
    Signature(
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
        r"|expects all elements of std >= 0|\bDivergedError\b",
        mark("the training diverged: a loss or gradient is not finite"),
        mark(
            "it resumes once from the last finite checkpoint. If it fails at the same step, "
            "suspect the data; at another, the learning rate or precision"
        ),
        waits_s=(1.0,),
    ),
    Signature(
        "DP4",
        Course.FIX_DATA,
        r"stack expects each tensor to be equal size|Cannot batch tensors with different"
        r"|each element in list of batch should be of equal size"
        r"|Unable to create tensor, you should probably activate truncation"
        r"|batch must contain tensors"
        r"|[Tt]rying to resize storage that is not resizable",
        mark("samples of different sizes cannot be batched"),
        mark("pad or crop them in the dataset, or pass a collate_fn"),
    ),
    Signature(
        "DP6",
        Course.FIX_CODE,
        r"[Cc]an't (?:get local object|get (?:object|attribute) [^\n]{0,80}on <module|pickle)"
        r"|[Cc]annot pickle|PicklingError",
        mark("an object passed to workers cannot be pickled"),
        mark("a dataset with workers must not hold a lambda, an open file or a local class"),
    ),
    Signature(
        "DP8",
        Course.FIX_CODE,
        r"Expected more than 1 value per channel when training",
        mark("the last batch has only one sample"),
        mark("set drop_last=True on the training loader"),
    ),
    Signature(
        "U37",
        Course.FIX_CODE,
        r"Image size of [^\n]{0,60} is too large|less than 2\^16|DecompressionBombError",
        mark("an image is too large"),
        mark("draw fewer panels or lower the dpi"),
    ),
    Signature(
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
        mark("a data file cannot be read"),
        mark("remove it or download it again; the traceback names it"),
    ),
    Signature(
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
        mark("no data where the script looks"),
        mark("put it on the box under $BOXCAR_DATA_DIR, or correct the path"),
    ),
    Signature(
        "NOFILE",
        Course.FIX_DATA,
        r"FileNotFoundError|[Cc]annot find (?:\w+ )?file"
        r"|[Cc](?:annot|an't|ouldn't|ould not) open (?:the )?file\b"
        r"|\[Errno 2\]|No such file or directory|os error 2\b"
        r"|\.\w{1,12} cannot be opened|Error: \S+\.\w{1,12}['\"]? (?:was |is )?(?:not found"
        r"|does not exist)|NotADirectoryError|IsADirectoryError|没有那个文件或目录",
        mark("the script opens a file that does not exist"),
        mark(
            "add the file or correct the path: relative paths start at the code folder, data is "
            "in $BOXCAR_DATA_DIR"
        ),
        is_general=True,
    ),
)
