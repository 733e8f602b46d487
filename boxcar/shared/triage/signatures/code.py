"""Configs, and what libraries say of the code that calls them. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature

SIGNATURES = (
    Signature(
        "U27",
        Course.FIX_CONFIG,
        r"Override path [^\n]{0,120} is not a mapping|Config(?:Key|Attribute|Type|Value"
        r"|Composition\w*|File\w*)?(?:Error|Exception)\b|Could not override"
        r"|Error (?:locating target|instantiating)|Could not find '[\w/]+/"
        r"|Available options in|Error (?:merging"
        r"|parsing) override|MissingConfigException|InterpolationKeyError"
        r"|InterpolationResolutionError|MissingMandatoryValue|OverrideParseException"
        r"|Key '[^'\n]{1,80}' (?:is )?not in "
        r"|INVALID_PARAMETER_VALUE|^Try '[^'\n]{1,80}' for (?:more information|help)"
        r"|unrecognized arguments|the following arguments are required"
        r"|argument [^\n]{1,80}: (?:invalid|expected|not allowed)|invalid choice: "
        r"|error: argument |ambiguous option|No such option|Missing (?:option|argument"
        r"|parameter)|Got unexpected extra argument|UsageError\b|BadParameter"
        r"|Repo id must be|Incorrect path_or_model_id|yaml\.(?:scanner|parser|constructor"
        r"|composer)\.\w+|ScannerError"
        r"|MisconfigurationException(?![^\n]*(?:` method|overrid|LRScheduler))|ValidationError"
        r"|validation errors? for|jsonargparse"
        r"|Parser key \"|TOMLDecodeError|toml\.decoder|[Uu]nknown (?:model|optimizer|scheduler"
        r"|dataset|backbone|activation|config|argument|option"
        r"|key|flag)|[Ii]nvalid (?:config(?!uration argument)\w*|hyperparameter|value for)\b"
        r"|FLAGS[^\n]{0,40}(?:Illegal|Unknown)|HfArgumentParser|Some keys are not used by the"
        r"|DeepSpeedConfigError|Unknown model|(?:is|are) not (?:a )?(?:supported"
        r"|valid) (?:option|choice|value)|InstantiationException|must contain the key"
        r"|'(?:Config\w*|Cfg\w*|DictConfig)' object has no attribute|[Uu]nrecognized arguments"
        r"|^SystemExit: 2\b|^\S+\.py: error: |is not in the \S+ registry"
        r"|only supports head dimension|Config name is missing"
        r"|BuilderConfig \S+ not found|Problem with given class_path"
        r"|(?:not a |in)valid (?!config)\w+ (?:argument|option|key|choice)\b"
        r"|(?:must be|should be|has to be|is not|isn't) (?:evenly |exactly )?(?:divisible by"
        r"|a multiple of)",
        mark("the script does not accept this config or flag"),
        mark("correct the config or the queue line"),
    ),
    Signature(
        "DTYPE",
        Course.FIX_CONFIG,
        r"(?:B[Ff]loat16|bf16|bfloat16|fp8|float8|tf32)[^\n]{0,80}(?:not supported|requires"
        r"|unsupported|only)|doesn't support bf16|Your setup doesn't support bf16"
        r"|not implemented for '(?:BFloat16|Half|Float8\w*)'|(?:FP16|fp16|[Hh]alf.precision"
        r"|[Mm]ixed.precision)"
        r"[^\n]{0,80}(?:can only|only (?:be )?(?:used|supported|available)|not supported|requires)"
        r"|only supports? (?:fp16|bf16|float16|half)|MPS (?:device|framework|backend)"
        r"|CUBLAS_STATUS_NOT_SUPPORTED|uses-fp64",
        mark("this GPU or operation does not support that precision"),
        mark("choose a supported precision: before Ampere, fp16 instead of bf16"),
    ),
    Signature(
        "NUMTEXT",
        Course.FIX_CONFIG,
        r"not supported between instances of '(?:float' and 'str|str' and 'float)'"
        r"|can't multiply sequence by non-int of type 'float'"
        r"|(?:could not|can't|cannot) convert string to float: '?[-+\d.]+[eE]"
        r"|[+*/-]=?: '(?:float' and 'str|str' and 'float)'",
        mark("a number of the config was read as text"),
        mark("YAML reads 1e-4 as text: write 1.0e-4, or convert it with float() in the script"),
    ),
    Signature(
        "GRAD",
        Course.FIX_CODE,
        r"(?:not|that|n't) requires? grad|can require gradients|backward through the graph"
        r"|[Tt]rying to backward|(?:modified by an|is being (?:used|modified)[^\n]{0,8}) ?in-?place"
        r"|leaf Variable|grad can be implicitly created only|differentiated Tensors"
        r"|CheckpointError\b|Inference tensors cannot|Output \d+ of \w+Backward\d* is a view"
        r"|[Bb]ackward can only be called in training mode|grad_fn|deepcopy protocol"
        r"|set_materialize_grads|(?:gradient|derivative) (?:for \S+ )?is not implemented",
        mark("autograd cannot differentiate what the script does"),
        mark(
            "detach() tensors kept from an earlier step, clone() tensors changed in place, and "
            "check that the loss depends on trainable parameters"
        ),
    ),
    Signature(
        "COMPILE",
        Course.FIX_CODE,
        r"torch\._(?:dynamo|inductor)\.exc\.(?!TorchRuntimeError|GPUTooOld|TritonMissing)"
        r"|BackendCompilerFailed|InductorError|LoweringException|GuardOnDataDependent"
        r"|triton\.compiler\.\w*\.?CompilationError|^\w*CompilationError: at \d"
        r"|fall back to eager by setting|ConstraintViolationError|Tracer\w*Error"
        r"|ConcretizationTypeError|torch\.jit\.frontend|neuronx?-cc failed"
        r"|[Gg]raph compile failed|synNodeCreateWithId failed|Compiler: \w+ is not found",
        mark("the model cannot be traced or compiled (torch.compile, triton, jit)"),
        mark(
            "first try without compiling: env: {{TORCHDYNAMO_DISABLE: '1'}} in job.yaml; then "
            "change what the error names"
        ),
    ),
    Signature(
        "DTENSOR",
        Course.FIX_CODE,
        r"got mixed torch\.Tensor and DTensor",
        mark("one part of the model is sharded and another is not"),
        mark(
            "also shard the part in the traceback (fully_shard, parallelize_module), often the "
            "embedding or output layer; call the model itself, not a part of it"
        ),
    ),
    Signature(
        "SHAPE",
        Course.FIX_CODE,
        r"mat1 and mat2 shapes cannot be multiplied|must match the size of tensor"
        r"|[Ss]izes of tensors must match|shape '[^'\n]*' is invalid for input of size"
        r"|[Ee]xpected object of|must be on the (?:current|same) device"
        r"|multi-target not supported|expected (?:scalar type|input|Tensor|all tensors)"
        r"|Expected all tensors to be on the same device|(?:[Ee]xpected|must be) \d+-?D\b"
        r"|Given groups="
        r"|weight of size|operands could not be broadcast|Input type \([^\n]{0,60}and (?:weight"
        r"|bias) type"
        r"|[Dd]imension (?:out of range|specified)|The size of tensor a"
        r"|CUBLAS_STATUS_INVALID_VALUE|CUDNN_STATUS_BAD_PARAM|[Mm]ismatch in shape"
        r"|number of sizes provided|cannot reshape array of size|[Ss]hape mismatch"
        r"|inconsistent tensor size|self and mat2 must have the same dtype"
        r"|[Ii]ncompatible shapes|shapes? .{0,40}(?:not aligned|mismatch)"
        r"|only batches of spatial targets"
        r"|appears not to match sizes of the same param|Boolean value of Tensor"
        r"|must be broadcastable|corresponding input dimension|size-incompatible"
        r"|incompatible with the layer"
        r"|must have the same (?:first dimension|shape|size|dtype)"
        r"|inconsistent sizes|along axis|contracting dimensions|TorchRuntimeError"
        r"|CUDNN_STATUS_NOT_SUPPORTED"
        # Any sentence of theirs on sizes, types and devices.
        r"|^(?:[\w.]+\.)?(?!Attribute|Key|Name|Import|ModuleN|Syntax|FileN|Tracer"
        r"|Concret)[A-Z]\w*Error: (?![\w.<>]+\(\) (?:got|missing|takes))"
        r"[^\n]{0,160}?(?:(?<!')\b[Ss]hapes?\b|\b[Tt]ensors?\b|\bdim(?:ension)?s?\b|batch_size"
        r"|\bdtypes?\b"
        r"|scalar type|\bbroadcast|\bstrides?\b|\b[Kk]ernel size|\bchannels?\b|input size"
        r"|result type \w+|not implemented for '(?:Int|Long|Bool|Byte|Char|Short|Float|Double"
        r"|Complex\w*)'|torch\.Size|size mismatch|\bcuda:\d\b|\bto match number of|same schema)",
        mark("tensors do not match: shape, dtype, device or layout"),
        mark("the traceback names the line; test the fix with smoke before you push"),
    ),
    Signature(
        "PERM",
        Course.FIX_CONFIG,
        r"PermissionError|[Pp]ermission denied|\[Errno 13\]|\[Errno 1\]|EACCES|os error 13\b"
        r"|Operation not permitted|没有权限|权限不够|Access is denied|Insufficient Permissions"
        r"|dubious ownership|attempt to run as root|拒绝访问|being used by another process"
        r"|[Cc]heck (?:the |your )?permissions",
        mark("no permission to read or write a file or folder"),
        mark("write to $BOXCAR_OUT or $BOXCAR_DATA_DIR, or change the file's mode"),
        is_general=True,
    ),
    Signature(
        "ARGS",
        Course.FIX_CONFIG,
        r"^(?:[\w.]+\.)?(?:Value|Assertion|NotImplemented|Key|\w*Client)?(?:Error|Exception): "
        r"(?!\w+\(\))[^\n]{0,240}?(?:(?<![\w-])--[a-z][\w-]{2,}|[\w.]+=(?:True|False|None)\b`?"
        r"[^\n]{0,40}(?:to|or|option|instead)\b|[Uu]nrecogni[sz]ed (?:config|model|option"
        r"|argument|key|value|type|format|name)|\b(?:must|should|has to) be (?:one of|either"
        r"|in \[|set\b|specified|provided|passed|a positive|positive|greater|less|>|<|between"
        r"|divisible)|[Pp]lease check [^\n]{0,40}config|not found in the base model"
        r"|[Pp]lease (?:set|correct|fix"
        r"|specify|choose|select|pick|provide|pass|change|enable|disable)\b"
        r"|not (?:yet )?supported|[Uu]nsupported|\b\w+_\w+ [^\n]{0,20}(?:is|cannot be"
        r"|exceeds) (?:greater|larger|less|smaller|longer)"
        r"|incompatible with|not compatible with"
        r"|[Uu]nknown (?:split|name|type|key|loss|metric|method|mode|value)|only supported"
        r"|(?:bad|malformed|duplicate) (?:entry|line)\b)"
        r"|^[Uu]sage: ",
        mark("a library rejects a value passed to it"),
        mark("correct the config or the queue line"),
        is_general=True,
    ),
    Signature(
        "ENV",
        Course.FIX_CONFIG,
        r"^KeyError: '[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|DIR|HOME|PATH|ROOT|URL|HOST|PORT|ADDR)'"
        r"|: (?:unbound variable|parameter not set)$"
        r"|[Ee]nvironment variable [^\n]{0,60}(?:not (?:set|defined)|missing|must be set"
        r"|undefined)",
        mark("an environment variable is not set"),
        mark("set it under env: in job.yaml, or name it under secrets: if it is secret"),
        is_general=True,
    ),
    Signature(
        "SCREEN",
        Course.FIX_CONFIG,
        r"(?:could not|[Cc]annot|[Uu]nable to) (?:connect to|open) (?:the |X )?display"
        r"|no display name"
        r"|NoSuchDisplay|Qt platform plugin|GLEW initialization|gladLoadGL|GLFWError"
        r"|cannot open display"
        r"|[Ff]ailed to (?:create|initialize) (?:an? )?(?:OpenGL|EGL|GLX?\b|window)",
        mark("the script needs a display, and the box has none"),
        mark(
            "render offscreen: env: {{MPLBACKEND: Agg, MUJOCO_GL: egl, QT_QPA_PLATFORM: offscreen}}"
        ),
    ),
    Signature(
        "U44",
        Course.FIX_CODE,
        r"An attempt has been made to start a new process before",
        mark("a script starts processes without a __main__ guard"),
        mark("put its entry point under if __name__ == '__main__':"),
    ),
    Signature(
        "SAID",
        Course.FIX_CONFIG,
        r"(?!)",
        mark("the script exited by itself with this message"),
        mark("usually it rejects its input or config: do what the message says"),
    ),
    Signature(
        "DPW",
        Course.RESUME_SAME,
        r"background workers? (?:\w+ ){0,3}no longer alive"
        r"|DataLoader worker \(pid\(?s?\)?[^\n]{0,60}(?:exited unexpectedly"
        r"|is killed by signal)|DataLoader timed out after|subprocess(?:es)? has abruptly died"
        r"|Pin memory thread exited unexpectedly|BrokenProcessPool",
        mark("a data loader worker died"),
        mark("nothing at first; run it here with num_workers=0 to see the error"),
        explained_by=("U44", "DP15", "U9W"),
        waits_s=(10.0,),
        is_general=True,
    ),
    Signature(
        "INT",
        Course.RESUME_SAME,
        r"^KeyboardInterrupt\b|got signal: 2\b|closing signal SIGINT|Received 2 death signal",
        mark("it was interrupted (SIGINT)"),
        mark("nothing: it is retried from its checkpoint"),
        waits_s=(1.0, 60.0),
        is_symptom=True,
    ),
)
