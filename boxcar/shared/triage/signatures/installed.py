"""What is installed, shells and their files. Data."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Where, row

SIGNATURES = (
    row(
        "U26",
        Course.FIX_CODE,
        r"\$'[^'\n]{0,200}\\r'|set: -\S*: invalid option"
        r"|syntax error near unexpected token [^\n]{0,40}(?:\\r|\r)"
        r"|bad interpreter: [^\n]{0,60}(?:\^M|\r)"
        r"|/usr/bin/env: '[^\n]{0,30}(?:\\r|\r)",
        ("a script has Windows line ends (CRLF)", "脚本使用 Windows 换行（CRLF）"),
        (
            "sed -i 's/\\r$//' on the file, and git config core.autocrlf input",
            "对该文件执行 sed -i 's/\\r$//'，并设置 git config core.autocrlf input",
        ),
    ),
    row(
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
        (
            "an extension or a package cannot be built here: compiler, headers or CUDA toolkit",
            "扩展或软件包无法在此编译：编译器、头文件或 CUDA 工具包",
        ),
        (
            "take a wheel that is built for this torch and Python, or install what its words name",
            "使用为该 torch 与 Python 编译好的包，或安装其所指之物",
        ),
        types="launch",
    ),
    row(
        "GLIBC",
        Course.FIX_CODE,
        r"\b(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+[`'\"]? (?:not found|not defined)",
        (
            "this box's own C or C++ library is older than a program that was installed",
            "本机的 C/C++ 运行库比所装程序要求的旧",
        ),
        (
            "take a newer image, or a build for an older system; for GLIBCXX and CXXABI "
            "conda install libstdcxx-ng",
            "换更新的镜像，或使用为旧系统编译的包；GLIBCXX 与 CXXABI 可 conda install libstdcxx-ng",
        ),
        types="launch",
    ),
    row(
        "MOD-CUDA",
        Course.FIX_CODE,
        r"\blib(?:cudart|nvrtc|nvJitLink|cu(?:blas|fft|rand|solver|sparse|dnn|pti|file)|npp)"
        r"[\w-]*\.so\.\d[\d.]*: cannot open shared object file"
        r"|Could not find the bitsandbytes CUDA binary|libbitsandbytes_cuda\w+\.so: cannot open",
        (
            "a package was built for another CUDA than the torch that is installed here",
            "某个软件包是为另一版本的 CUDA 编译的，与此处所装的 torch 不符",
        ),
        (
            "no system package has that library: take the package's build for the CUDA of this "
            "torch (boxcar audit names it; +cu128 is CUDA 12.8), or its release that was made for "
            "this torch; leave out BNB_CUDA_VERSION",
            "系统软件包中没有这个库：换用针对此 torch 的 CUDA 编译的版本（boxcar audit 会列出；"
            "+cu128 即 CUDA 12.8），或与此 torch 配套的版本；不要设置 BNB_CUDA_VERSION",
        ),
        types="launch",
    ),
    row(
        "MOD-AV",
        Course.FIX_CODE,
        r"libtorchcodec|\blib(?:av\w+|sw\w+)\.so\.\d+: cannot open shared object file",
        (
            "sound or video cannot be read: FFmpeg's libraries are missing, or torchcodec does not "
            "fit this torch",
            "无法读取音视频：缺少 FFmpeg 的库，或 torchcodec 与此 torch 不匹配",
        ),
        (
            "install ffmpeg with the system's packages or conda; take the torchcodec that its "
            "table of versions names for this torch",
            "用系统软件包或 conda 安装 ffmpeg；按 torchcodec 的版本表选用与此 torch 对应的版本",
        ),
        types="launch",
        explained_by=("MOD-CUDA",),
    ),
    row(
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
        (
            "a module is there in another version than the code, or another module, needs",
            "所装模块的版本不是代码或另一模块所需的",
        ),
        (
            "take versions that were made for each other: raise the one that is too old, or hold "
            "the newer one back; install anew what was built for another numpy or torch "
            "(undefined symbol, size changed)",
            "换成互相匹配的版本：升级过旧的，或固定较新的；为另一版本 numpy 或 torch 编译的"
            "（undefined symbol、size changed）请重新安装",
        ),
        types="launch",
    ),
    row(
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
        (
            "the environment lacks a module, or has another version of it",
            "环境缺少模块，或版本不符",
        ),
        (
            "install it on the box, into the Python that trains (boxcar audit names it); a lib*.so "
            "with the system's packages",
            "在机器上把它装进训练用的 Python（boxcar audit 会列出是哪个）；"
            "lib*.so 用系统软件包安装",
        ),
        types="launch",
    ),
    row(
        "NODIST",
        Course.FIX_CODE,
        r"ResolutionImpossible|conflicting dependencies|No matching distribution found"
        r"|Could not find a version that satisfies|externally[- ]managed|ResolvePackageNotFound"
        r"|No solution found when resolving|DO NOT MATCH THE HASHES|UnsatisfiableError"
        r"|No such package",
        (
            "pip or conda finds no packages that fit what is asked for",
            "pip 或 conda 找不到符合要求的软件包",
        ),
        (
            "loosen or correct the versions in requirements:, for the Python of the box",
            "放宽或改正 requirements: 中的版本，使其适合机器上的 Python",
        ),
        types="launch",
        explained_by=("DNS", "PX", "SSL", "PIP"),
    ),
    row(
        "NOEXE",
        Course.STOP_QUEUE,
        r"^(?:[^\n:]{1,80}: (?:(?:line )?\d+: )?)?[\w./+-]+: (?:command not found|not found)$"
        r"|is not recognized as (?:an internal|the name of)|不是内部或外部命令"
        r"|无法将.{1,60}项识别为"
        r"|\bcommand not found\b|bad interpreter: (?:No such file|Permission)"
        r"|(?:env|execve\(\)): [^\n]{1,60}: No such file or directory"
        r"|cannot execute(?:: required file not found| binary file)|[Ee]xec format error"
        r"|[Ee]xecutable file not found|未找到命令|can't open file ",
        ("a program was not found, or cannot be run here", "找不到程序，或在此无法运行"),
        (
            "look at training_python, command and PATH: what a login shell loads is not "
            "loaded here",
            "检查 training_python、command 与 PATH：登录 shell 加载的内容此处不加载",
        ),
        types="audit",
        where=Where.LINE,
    ),
    row(
        "FORK",
        Course.FIX_CODE,
        r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error"
        r"|context has already been set",
        ("processes are started in the wrong way", "启动子进程的方式不对"),
        (
            "use the start method spawn, below if __name__ == '__main__':",
            "请使用 spawn 启动方式，并放在 if __name__ == '__main__': 之下",
        ),
    ),
    row(
        "CONDA",
        Course.STOP_QUEUE,
        r"CondaError|EnvironmentNameNotFound|Could not find conda environment"
        r"|EnvironmentLocationNotFound"
        r"|Your shell has not been properly configured to use 'conda|PackagesNotFoundError"
        r"|LibMambaUnsatisfiable",
        ("conda has no such environment here", "conda 中没有此环境"),
        ("name the interpreter by its path: training_python", "用路径指定解释器：training_python"),
        types="audit",
    ),
    row(
        "NOGIT",
        Course.FIX_CODE,
        r"^fatal: not a git repository|InvalidGitRepositoryError|NoSuchPathError",
        (
            "the script asks git, and the code on the box has no .git",
            "脚本调用 git，而机器上的代码没有 .git",
        ),
        (
            "let it go on without git, or give it the commit by a variable of env:",
            "让脚本在没有 git 时继续，或用 env: 中的变量告知提交号",
        ),
        is_general=True,
    ),
)
