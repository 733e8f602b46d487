"""What Python says of a script's own faults, by the kind of exception. Data; the last are families.

Their ids begin with PY: in journals they are the script's own, named by its exit code.
"""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, row


def _raised(names: str) -> str:
    """Of these types; a notebook's heading has the type alone before its traceback."""
    return rf"^(?:[\w.]+\.)?(?:{names})(?:Error|Exception)?\b(?!\s+Traceback)"


def _own(id: str, pattern: str, words: tuple[str, str], todo: tuple[str, str]) -> Signature:
    return row(id, Course.FIX_CODE, pattern, words, todo, is_general=True)


SIGNATURES = (
    _own(
        "PY-SYNTAX",
        _raised("Syntax|Indentation|Tab"),
        ("a file of the code is no valid Python", "代码文件不是合法的 Python"),
        ("correct the line that it names", "改正其所指的那一行"),
    ),
    _own(
        "PY-NAME",
        _raised("Name|UnboundLocal") + r"|referenced before assignment|cannot access local variable"
        r"|\bname '\w+' is not defined",
        (
            "a name is not defined: its import or assignment is missing",
            "名称未定义：缺少导入或赋值",
        ),
        (
            "import or assign it; a guarded import may have failed",
            "导入或赋值；受保护的导入可能失败了",
        ),
    ),
    _own(
        "PY-NONE",
        r"(?<!\w)'?NoneType\b",
        ("a value is None where the script uses it", "脚本使用的值为 None"),
        (
            "see what should have set it: an argument, a file or a search that found nothing",
            "查看本应由谁赋值：参数、文件或没有结果的查找",
        ),
    ),
    _own(
        "PY-API",
        r"got an unexpected keyword argument|has no attribute\b|required (?:positional"
        r"|keyword-only)"
        r"|positional arguments? but|takes (?:from )?\d+ (?:to \d+ )?positional|takes no arguments"
        r"|takes no keyword arguments|multiple values for (?:keyword )?argument"
        r"|abstract (?:class|method)|' object is not callable|No `\w+\(\)` method"
        r"|must be (?:implemented|overridden)|(?:was|been) removed\b",
        (
            "the code does not fit what it calls: misspelt, or of another version of a library",
            "代码与其调用的接口不符：拼写错误，或库版本不同",
        ),
        (
            "compare the call with the version that is installed: pip show NAME on the box",
            "与已安装的版本核对调用方式：在机器上 pip show NAME",
        ),
    ),
    _own(
        "PY-KEY",
        _raised("Key|Lookup") + r"|\] not in index\b",
        ("a key or column is not there", "缺少键或列"),
        (
            "print which ones are there: of the batch, the dataset, the config or the checkpoint",
            "打印现有的键：批次、数据集、配置或检查点",
        ),
    ),
    _own(
        "PY-INDEX",
        _raised("Index") + r"|index out of range$",
        ("an index is beyond the end", "索引超出末尾"),
        ("see how long it is there, and whether it is empty", "查看其长度，以及是否为空"),
    ),
    _own(
        "PY-CHECK",
        _raised("Assertion"),
        ("a check of the code itself failed", "代码自身的检查未通过"),
        ("the traceback shows what it checks", "traceback 显示了所检查的内容"),
    ),
    _own(
        "PY-VALUE",
        _raised(r"Type|Value|Attribute|Overflow|ZeroDivision|Arithmetic|Unicode\w*")
        + r"|values to unpack \(expected|' object is not (?:subscriptable|iterable)"
        r"|unsupported operand type|invalid literal for",
        (
            "a value is not of the type or form that the code expects",
            "值的类型或形式不是代码所期望的",
        ),
        (
            "the traceback names the line; try it with smoke before you push",
            "traceback 指出了所在行；推送前先用 smoke 试",
        ),
    ),
    _own(
        "PY",
        _raised("NotImplemented|Recursion|Runtime|StopIteration|EOF")
        + r"(?![^\n]*(?:root cause|stack trace) above|[^\n]*for (?:the )?root cause)",
        ("the script failed with an error of its own", "脚本自身出错"),
        (
            "the traceback names the line; try it with smoke before you push",
            "traceback 指出了所在行；推送前先用 smoke 试",
        ),
    ),
)
