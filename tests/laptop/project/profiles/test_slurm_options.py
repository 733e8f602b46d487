from __future__ import annotations

import pytest

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.profiles.slurm_options import (
    Cluster,
    SlurmOfJob,
    SlurmOptions,
    laid_over,
    seconds_of,
)
from boxcar.shared.errors import InputError


def read(text: str) -> SlurmOfJob:
    return yaml_models.parse(text.encode(), "job.yaml", SlurmOfJob)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 5400), ("90:30", 5430), ("1:30:00", 5400), ("2-12", 216_000)),
        *(("1-02:30", 95_400), ("1-02:30:15", 95_415), ("1", 60)),
    ],
)
def test_a_time_is_read_as_slurm_reads_it(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds
    # YAML alone would make a number of minutes of 1:30:00.
    assert read(f"time: {text}").time == text


@pytest.mark.parametrize("text", ["2h", "0", "1:2:3:4", "-5", "1-", "UNLIMITED", "0:59"])
def test_another_spelling_of_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time"):
        seconds_of(text)


@pytest.mark.parametrize(
    "line",
    [
        *("partition: gpu long", "account: a;b", "qos: '#x'", "gres: gpu:2 --array=1"),
        *("mem: 8 GB", "constraint: $(id)", "partition: 'a\nb'", "login: -oProxyCommand=x"),
        *("gres: 'gpu`id`'", "cpus_per_task: 0", "unknown: 1", 'account: "é"'),
    ],
)
def test_nothing_gets_into_the_script_that_is_not_one_plain_word(line: str) -> None:
    with pytest.raises(InputError):
        read(line)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--array=0-5", "Boxcar sets --array itself"),
        ("--arr=0-5", "Boxcar sets --array itself"),
        ("--requeue", "Boxcar sets --requeue itself"),
        ("--no-requeue", "Boxcar sets --no-requeue itself"),
        ("--out=x", "Boxcar sets --output itself"),
        ("--dependency=afterok:1", "Boxcar sets --dependency itself"),
        ("--partition=gpu", "key. Write partition: …"),
        ("--cpus-per-task=4", "Write cpus_per_task: …"),
        ("--t=5", "key. Write time: …"),
        ("-p gpu", "long form"),
        ("--mail-type=END --array=1", "long form"),
        ("--comment='x'", "long form"),
        ("--mail-user=$USER", "long form"),
        ("exclusive", "long form"),
    ],
)
def test_extra_refuses_what_boxcar_sets_and_what_has_a_key(option: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f'extra: ["{option}"]')
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--exclusive",
            "--mail-type=END,FAIL",
            "--reservation=maintenance_1",
            "--gpus-per-task=1",
        ),
        *("--mem-per-cpu=4G", "--licenses=matlab:1", "--exclude=n[1-3],n7", "--time-min=10"),
    ],
)
def test_extra_takes_what_boxcar_knows_nothing_of(option: str) -> None:
    assert read(f'extra: ["{option}"]').extra == (option,)


def test_the_options_of_sbatch_are_the_keys_in_their_order() -> None:
    options = read(
        "{partition: gpu, account: lab, qos: high, time: 1-00, gres: gpu:a100:2, cpus_per_task: 8, "
        "mem: 64G, constraint: 'a100|h100', extra: [--exclusive]}"
    )
    assert list(options.lines()) == [
        *("--partition=gpu", "--account=lab", "--qos=high", "--time=1-00", "--gres=gpu:a100:2"),
        *("--cpus-per-task=8", "--mem=64G", "--constraint=a100|h100", "--exclusive"),
    ]


def test_a_queue_has_the_last_word_of_each_key_and_each_extra_option() -> None:
    cluster = Cluster(login="hpc", partition="gpu", time="60", extra=("--exclusive", "--nice=5"))
    job = SlurmOfJob(time="120", extra=("--nice=1",))
    own = SlurmOptions(gres="gpu:2", partition="long")
    found = laid_over(cluster, job, own)
    assert (found.partition, found.time, found.gres) == ("long", "120", "gpu:2")
    assert found.extra == ("--exclusive", "--nice=1")
    assert found.time_s == 7200


def test_several_nodes_have_one_task_each() -> None:
    assert list(read("nodes: 1").lines()) == []
    assert list(read("nodes: 2").lines()) == ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]


def test_a_container_line_is_words() -> None:
    cluster = yaml_models.parse(b"container: apptainer exec --nv '/a b.sif'", "p", Cluster)
    assert cluster.container == ("apptainer", "exec", "--nv", "/a b.sif")
