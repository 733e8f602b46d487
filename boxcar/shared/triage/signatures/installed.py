"""What is installed, shells and their files. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, Where

SIGNATURES = (
    Signature(
        "U26",
        Course.FIX_CODE,
        r"\$'[^'\n]{0,200}\\r'|set: -\S*: invalid option"
        r"|syntax error near unexpected token [^\n]{0,40}(?:\\r|\r)"
        r"|bad interpreter: [^\n]{0,60}(?:\^M|\r)"
        r"|/usr/bin/env: '[^\n]{0,30}(?:\\r|\r)",
        mark("a script has Windows line endings (CRLF)"),
        mark("run sed -i 's/\\r$//' on the file, and set git config core.autocrlf input"),
    ),
    Signature(
        "BUILD",
        Course.FIX_CODE,
        r"Error building extension|ninja: build stopped|[Nn]inja is required"
        r"|error: invalid command '"
        r"|CUDA_HOME (?:environment variable is not set|does not exist)|MissingCUDAException"
        r"|subprocess-exited-with-error|Failed building wheel|build wheels? (?:did not|for)"
        r"|metadata-generation-failed|nvcc fatal|collect2: error|cannot find -l\w+"
        r"|(?:gcc|g\+\+|c\+\+|clang|cc|nvcc|ninja|cmake)'[^\n]{0,300}returned non-zero"
        r"|[Ff]ailed to find C compiler|fatal error: '?\S+\.h\w*'?:? (?:No such|file not)"
        r"|^CMake Error\b|\b(?:nvcc|compiler) was not found|only supported on CUDA \d"
        r"|[Uu]nable to find vcvarsall|Microsoft Visual C\+\+ [\d.]+ (?:or greater )?is required"
        r"|unsupported GNU version|g\+\+ is (?:greater|less) than the"
        r"|error: command '[^'\n]{1,200}' failed",
        mark(
            "an extension or package cannot be built here: compiler, headers or CUDA toolkit "
            "missing or wrong"
        ),
        mark("use a wheel built for this torch and Python, or install what the error names"),
        types="launch",
    ),
    Signature(
        "GLIBC",
        Course.FIX_CODE,
        r"\b(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+[`'\"]? (?:not found|not defined)",
        mark("the box's C or C++ library is too old for an installed program"),
        mark(
            "use a newer image, or a build for an older system; for GLIBCXX and CXXABI: conda "
            "install libstdcxx-ng"
        ),
        types="launch",
    ),
    Signature(
        "MOD-CUDA",
        Course.FIX_CODE,
        r"\blib(?:cudart|nvrtc|nvJitLink|cu(?:blas|fft|rand|solver|sparse|dnn|pti|file)|npp)"
        r"[\w-]*\.so\.\d[\d.]*: cannot open shared object file"
        r"|Could not find the bitsandbytes CUDA binary|libbitsandbytes_cuda\w+\.so: cannot open",
        mark("a package was built for a different CUDA than the installed torch"),
        mark(
            "no system package has that library. Use the package's build for this torch's CUDA "
            "(boxcar audit shows it; +cu128 is CUDA 12.8), or its release for this torch; do not "
            "set BNB_CUDA_VERSION"
        ),
        types="launch",
    ),
    Signature(
        "MOD-AV",
        Course.FIX_CODE,
        r"libtorchcodec|\blib(?:av\w+|sw\w+)\.so\.\d+: cannot open shared object file",
        mark(
            "audio or video cannot be read: the FFmpeg libraries are missing, or torchcodec does "
            "not match this torch"
        ),
        mark(
            "install ffmpeg from system packages or conda; use the torchcodec version that its "
            "version table lists for this torch"
        ),
        types="launch",
        explained_by=("MOD-CUDA",),
    ),
    Signature(
        "MOD-VER",
        Course.FIX_CODE,
        # Not of the script's own modules.
        r"cannot import name '\w+' from '[\w.]+' \([^\n)]*(?:-packages|/python3[\w.]*)/"
        r"|undefined symbol"
        r"|symbol \S+ (?:version \S+ )?not defined in file"
        r"|VersionConflict|numpy\.\w+ size changed|A module that was compiled using NumPy 1"
        r"|No such operator|operator torchvision::nms does not exist|Could not run 'torchvision::"
        r"|[Nn]umpy is not available|_ARRAY_API not found|removed in the NumPy"
        r"|Descriptors cannot (?:not )?be created|incompatible Protobuf|'MessageFactory'"
        r"|requires a different Python|[Pp]ython (?:version )?[>=\d. ]+(?:or (?:higher|newer"
        r"|later) )?(?:is )?required|future feature \w+ is not defined"
        r"|mutable default [^\n]{1,120} is not allowed|'type' object is not subscriptable"
        r"|for \|: '(?:type|NoneType|_GenericAlias)|getargspec"
        r"|Tokenizer class \S+ does not exist or is not currently imported"
        r"|variant of untagged enum|does not recognize this architecture"
        r"|out of date\b[^\n]{0,60}(?:[Tt]ransformers|version)|pip install (?:-U|--upgrade)"
        r"|users to upgrade|scripts are no longer supported|no longer distributes"
        r"|newer than and incompatible with|doesn't follow PyTorch's"
        r"|^[\w.]*(?:Error|Exception): [^\n]{0,160}(?:requires?|needs?|install|upgrade|downgrade"
        r"|expected)\b"
        r"[^\n]{0,60}[\w\]\)'\"](?<!cuda) ?(?:>=|<=|==|~=|>|<) ?v?\d+\.\d",
        mark("a module's version is not the one that the code or another module needs"),
        mark(
            "use matching versions: upgrade the old one or pin the newer one; reinstall what was "
            "built for another numpy or torch (undefined symbol, size changed)"
        ),
        types="launch",
    ),
    Signature(
        "MOD",
        Course.FIX_CODE,
        # transformers says so behind what it could not import, and of why.
        r"ModuleNotFoundError(?!: Could not import module)|No module named|ImportError\b"
        r"|cannot open shared object file|DistributionNotFound|PackageNotFoundError"
        r"|requires? the following (?:packages|libraries)"
        r"|requires the \S+ library but it was not found|is not installed\b|TritonMissing"
        r"|DLL load failed|Failed to import transformers|OMP: Error #15|MKL_THREADING_LAYER"
        r"|MKL FATAL ERROR|(?:Could not|Cannot) (?:load"
        r"|locate) (?:library )?\w*(?:cudnn|cublas"
        r"|cudart|nccl|nvinfer)\w*|Unable to load any of \{|Cannot load symbol"
        r"|[Mm]ake sure to have [^\n]{0,60}installed|object has no attribute 'ds_opt_adam'"
        r"|not installed\.?$|WinError 126|specified module could not be found"
        r"|^AttributeError: (?:partially initialized )?module '[^'\n]+' has no attribute"
        r"|compiled (?:with|against|without)\b[^\n]{0,80}(?:version|support)|wasn't build with CUDA"
        r"|can't load C\+\+/CUDA extensions|CUDA Setup failed|[^\n']{0,20}'(?:[^'\n]*/)?(?:nvcc"
        r"|gcc|g\+\+|cc|ninja|git|ffmpeg|make|cmake|nvidia-smi|rocm-smi|sox|wget|unzip|java)'$"
        r"|Unable to locate package|[Hh]ave you installed|gym\w*\.error\.(?:\w+NotFound"
        r"|UnregisteredEnv|DeprecatedEnv)|adapter can only load once"
        r"|Device API \w+ is not enabled"
        r"|need to have [^\n]{0,40} installed|not (?:properly|correctly) installed"
        r"|backend to handle uri",
        mark("the environment lacks a module or has the wrong version"),
        mark(
            "on the box, install it into the training Python (boxcar audit shows which); a "
            "lib*.so comes from system packages"
        ),
        types="launch",
    ),
    Signature(
        "NODIST",
        Course.FIX_CODE,
        r"ResolutionImpossible|conflicting dependencies|No matching distribution found"
        r"|Could not find a version that satisfies|externally[- ]managed|ResolvePackageNotFound"
        r"|No solution found when resolving|DO NOT MATCH THE HASHES|UnsatisfiableError"
        r"|No such package",
        mark("pip or conda finds no matching packages"),
        mark("loosen or correct the versions in requirements: to suit the box's Python"),
        types="launch",
        explained_by=("DNS", "PX", "SSL", "PIP"),
    ),
    Signature(
        "NOEXE",
        Course.STOP_QUEUE,
        r"^(?:[^\n:]{1,80}: (?:(?:line )?\d+: )?)?[\w./+-]+: (?:command not found|not found)$"
        r"|is not recognized as (?:an internal|the name of)|不是内部或外部命令"
        r"|无法将.{1,60}项识别为"
        r"|\bcommand not found\b|bad interpreter: (?:No such file|Permission)"
        r"|(?:env|execve\(\)): [^\n]{1,60}: No such file or directory"
        r"|cannot execute(?:: required file not found| binary file)|[Ee]xec format error"
        r"|[Ee]xecutable file not found|未找到命令|can't open file ",
        mark("a program was not found, or cannot be run here"),
        mark("check training_python, command and PATH: login shell files are not loaded here"),
        types="audit",
        where=Where.LINE,
    ),
    Signature(
        "FORK",
        Course.FIX_CODE,
        r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error"
        r"|context has already been set",
        mark("the script starts processes in the wrong way"),
        mark("use the start method spawn, under if __name__ == '__main__':"),
    ),
    Signature(
        "CONDA",
        Course.STOP_QUEUE,
        r"CondaError|EnvironmentNameNotFound|Could not find conda environment"
        r"|EnvironmentLocationNotFound"
        r"|Your shell has not been properly configured to use 'conda|PackagesNotFoundError"
        r"|LibMambaUnsatisfiable",
        mark("conda has no such environment here"),
        mark("set training_python to the interpreter's path"),
        types="audit",
    ),
    Signature(
        "NOGIT",
        Course.FIX_CODE,
        r"^fatal: not a git repository|InvalidGitRepositoryError|NoSuchPathError",
        mark("the script calls git, but the code on the box has no .git"),
        mark("let the script work without git, or pass the commit in a variable under env:"),
        is_general=True,
    ),
)
