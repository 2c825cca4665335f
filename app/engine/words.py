"""The engine's sentences. Each says what failed, where, the evidence, and what to do next."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.engine.context import Ctx
from app.engine.outcome import Trouble
from gates.system_words import said
from gates.text import Text

SILENT = Text("No answer from the target of “{step}”.", "「{step}」的目标主机没有应答。")
HEARD_AGAIN = Text("The target of “{step}” answers again.", "「{step}」的目标主机恢复应答。")


BROKE_OFF = Text("The job broke off; its evidence was kept and goes to the judgement.", "作业中断；已保留其证据并提交判定。")
REBOOTED = Text(
    "The host of “{step}” rebooted (reboots so far: {n}). The load goes on for the whole duration, and all that was recorded before counts. "
    "Record the cause once the attempt is judged; when both parties approve it, the soak clock restarts there, else the soak is inconclusive.",
    "「{step}」的主机已重启（累计 {n} 次）。加载按完整时长继续，此前记录全部计入。"
    "判定后请登记重启原因；经双方确认，稳定性计时自该处重新开始，否则无法判定。",
)
GONE = Text(
    "The job is not on its target any more, also when asked for again. It is not measured a second time; what is there goes to the judgement.",
    "再次查找时，目标主机上仍不存在该作业。不再重复测量；以现有证据提交判定。",
)


def _trouble(code: str, en: str, zh: str, **values: object) -> Trouble:
    return Trouble(code, Text(en, zh).fill(**values))


def internal(ctx: Ctx, error: Exception) -> Trouble:
    """Say that we failed, not the target; the trace stands in the worker's log under the attempt's id."""
    return _trouble(
        "internal",
        "Quadgate itself failed in the step {step} ({kind}). The worker's log names the place under the attempt {attempt}. "
        "Nothing is lost: retry the attempt, and report this if it happens again.",
        "Quadgate 在步骤「{step}」中发生内部错误（{kind}）。详情见工作进程日志中尝试 {attempt} 的记录。数据未丢失：请重试；若再次出现请上报。",
        step=Text.parse(ctx.step.title) if ctx.step else Text("-", "-"),
        kind=type(error).__name__,
        attempt=ctx.attempt.id,
    )


def machine(ctx: Ctx, error: OSError, place: Path) -> Trouble:
    """Say what Quadgate's own machine refused, and where: a full disk, a folder that is not ours, a limit."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return _trouble(
        "disk_full" if full else "machine",
        "Quadgate's own machine refused something in the step {step}: {reason} ({path}; {free} bytes free in {place}). "
        "Nothing is lost: put this right, then retry the attempt.",
        "Quadgate 所在机器在步骤「{step}」中拒绝了操作：{reason}（{path}；{place} 剩余 {free} 字节）。数据未丢失：排除后请重试。",
        step=Text.parse(ctx.step.title) if ctx.step else Text("-", "-"),
        reason=said(error),
        path=str(error.filename or place),
        place=str(place),
        free=shutil.disk_usage(place).free if place.exists() else 0,
    )


def unreachable(host: str, address: str, message: str) -> Trouble:
    """Say that a host did not answer."""
    return _trouble(
        "unreachable",
        "The host {host} ({address}) cannot be reached: {message}. Check that it is switched on, that its address, port, user "
        "and host key in the engagement are right, and that this machine may log in; then retry.",
        "无法连接主机 {host}（{address}）：{message}。请检查该机是否开机，项目中的地址、端口、用户、主机公钥是否正确，"
        "以及本机是否有登录权限，然后重试。",
        host=host,
        address=address or "-",
        message=_end(message),
    )


def task_failed(host: str, task: str, message: Text, playbook: str) -> Trouble:
    """Say which task failed on which host, in the reader's language where the task itself spoke both."""
    return _trouble(
        "task_failed",
        "The playbook {playbook} failed on {host} in the task “{task}”: {message}. The attempt's events show the whole output. "
        "Put it right, then retry.",
        "剧本 {playbook} 在主机 {host} 的任务「{task}」失败：{message}。完整输出见该次尝试的事件。请排除后重试。",
        playbook=playbook,
        host=host or "-",
        task=task or "-",
        message=Text(_end(message.en), _end(message.zh)),
    )


def no_hosts(playbook: str) -> Trouble:
    """Say that a playbook did nothing anywhere, which must not read as success."""
    return _trouble(
        "no_hosts_matched",
        "The playbook {playbook} matched no host, so nothing was done. Check the groups of the hosts under targets.hosts of the engagement.",
        "剧本 {playbook} 未匹配任何主机，未执行任何操作。请检查项目 targets.hosts 中各主机的分组。",
        playbook=playbook,
    )


def unmatched(hosts: list[str], playbook: str) -> Trouble:
    """Say which expected hosts a playbook did not touch."""
    return _trouble(
        "host_unmatched",
        "The playbook {playbook} did nothing on {hosts}, which it should have covered. The attempt's events show where it ended.",
        "剧本 {playbook} 未在应覆盖的主机 {hosts} 上执行任何任务。中止位置见该次尝试的事件。",
        hosts=", ".join(hosts),
        playbook=playbook,
    )


def broken_run(playbook: str, status: str, message: str) -> Trouble:
    """Say that a playbook ended badly without naming a host."""
    return _trouble(
        "playbook_failed",
        "The playbook {playbook} ended as “{status}” before it could name a host: {message}. Put it right, then retry.",
        "剧本 {playbook} 以「{status}」结束，未能指明主机：{message}。请排除后重试。",
        playbook=playbook,
        status=status,
        message=_end(message or "no output"),
    )


def timed_out(step: Text, seconds: int) -> Trouble:
    """Say that a playbook took too long and was ended."""
    return _trouble(
        "timed_out",
        "The step {step} did not end within its {seconds} s; its processes here were ended. What it started on the targets may "
        "still be running there. Look at the last task in its events, then retry or cancel.",
        "步骤「{step}」未在 {seconds} 秒内结束，本机相关进程已终止；目标主机上已启动的操作可能仍在运行。请查看事件中的最后一个任务，然后重试或取消。",
        step=step,
        seconds=seconds,
    )


def events_lost(stored: int, counted: int) -> Trouble:
    """Say that the record of a run is not complete."""
    return _trouble(
        "events_incomplete",
        "Ansible reported {counted} events of this run and {stored} could be stored, so its record is not complete. The usual "
        "cause is a full disk below the state directory; make room, then retry.",
        "本次运行 Ansible 报告 {counted} 个事件，仅存储 {stored} 个，记录不完整。常见原因是状态目录所在磁盘已满；请清理空间后重试。",
        stored=stored,
        counted=counted,
    )


def lost_too_often(step: Text, tries: int) -> Trouble:
    """Say that host processes of a step vanished and a person is asked."""
    return _trouble(
        "run_lost",
        "The process that ran the step {step} vanished without a result ({tries} times); its left-overs were ended. Somebody or "
        "something kills it: look for the out-of-memory killer and for restarts of this machine, then retry.",
        "执行步骤「{step}」的进程无结果消失（{tries} 次），残留进程已清理。请检查本机是否内存不足或曾重启，然后重试。",
        step=step,
        tries=tries,
    )


def not_repeatable(step: Text) -> Trouble:
    """Say that a run was lost in a step that must not be repeated without a person's look at the target."""
    return _trouble(
        "run_lost_once",
        "The process that ran the step {step} vanished without a result, and the step is not declared repeatable. Look at the "
        "targets: retry only when what it had begun is undone.",
        "执行步骤「{step}」的进程无结果消失，且该步骤未声明可重复。请检查目标主机，确认其已开始的操作已撤销后再重试。",
        step=step,
    )


def missing_files(host: str, files: list[str], step: Text) -> Trouble:
    """Say which evidence a host did not bring."""
    return _trouble(
        "evidence_missing",
        "The host {host} did not bring {files} in the step {step}, which the gate needs. The attempt's events show what the host answered.",
        "主机 {host} 在步骤「{step}」中缺少门禁所需的证据文件 {files}。主机的应答见该次尝试的事件。",
        host=host,
        files=", ".join(files),
        step=step,
    )


def bad_pack(host: str, pack: str, why: Text) -> Trouble:
    """Say why a pack cannot be used."""
    return _trouble(
        "bad_pack",
        "The pack {pack} of the host {host} cannot be used: {why}. Retry the step, so that it is brought again.",
        "主机 {host} 的证据包 {pack} 不可用：{why}。请重试该步骤以重新取回。",
        host=host,
        pack=pack,
        why=why,
    )


def no_reply(hosts: list[str], playbook: str, reply: object) -> Trouble:
    """Say that a playbook did not answer the engine's question."""
    return _trouble(
        "no_reply",
        "The playbook {playbook} brought no usable answer from {hosts} (it said: {reply}). The task “reply” must print one JSON object.",
        "剧本 {playbook} 未从 {hosts} 取得可用应答（内容：{reply}）。任务「reply」须输出一个 JSON 对象。",
        hosts=", ".join(hosts) or "-",
        playbook=playbook,
        reply=str(reply)[:200],
    )


def job_absent(hosts: list[str], job: str, *, measured: bool) -> Trouble:
    """Say that a job that was started is not on its target any more. `measured`: it is not ordered a second time."""
    once = Text(
        "Find out who removed it or what is not mounted, and bring it back; a retry asks for it once more. What measures is never measured a "
        "second time within an attempt: if it is still gone then, the run has broken off and the attempt is judged.",
        "请查明是被删除还是目录未挂载，并予以恢复；重试时会再次查找。同一次尝试内不会重复测量：若届时仍不存在，该轮次按中断处理，并对本次尝试作出判定。",
    )
    again = Text("Find out who removed it; a retry starts this step from the beginning.", "请查明原因；重试将从头执行该步骤。")
    return _trouble(
        "job_absent",
        "The job {job} is not on {hosts} any more: its directory is gone, and with it the journal that was not fetched yet. {then}",
        "主机 {hosts} 上已不存在作业 {job}：其目录及尚未取回的日志均已丢失。{then}",
        hosts=", ".join(hosts),
        job=job,
        then=once if measured else again,
    )


def nothing_measured(step: Text, kind: str, host: str, message: str) -> Trouble:
    """Say that a job ended before it measured anything, by the kind of its end: its engine did not come up, or there is no room for it."""
    return _trouble(
        "engine_failed" if kind in ("engine", "attendant") else "no_room",
        "The job of the step {step} ended on {host} before it could measure anything: {message}. No measured request was made. "
        "Put this right, then retry: another job is started.",
        "步骤「{step}」的作业在主机 {host} 上于开始测量之前结束：{message}。未发出任何测量请求。请排除后重试：将启动新的作业。",
        step=step,
        host=host,
        message=_end(message)[:900],
    )


def job_overdue(step: Text, seconds: int) -> Trouble:
    """Say that a job runs far beyond its time."""
    return _trouble(
        "job_overdue",
        "The job of the step {step} is still running {seconds} s after it should have ended. Cancel the attempt to stop it on "
        "the target, or retry to go on waiting.",
        "步骤「{step}」的作业在应结束后 {seconds} 秒仍在运行。可取消该次尝试以在目标主机上停止它，或重试以继续等待。",
        step=step,
        seconds=seconds,
    )


def not_stopped(running: Mapping[str, Sequence[str]], why: list[Text]) -> Trouble:
    """Say what a cancel could not stop, host by host: `running` holds what the targets themselves said of it."""
    going_on = [
        Text("On {host} something still runs: {said} ", "主机 {host} 上仍有进程在运行：{said} ").fill(host=host, said=" ".join(said) or "-")
        for host, said in running.items()
    ]
    return _trouble(
        "not_stopped",
        "Canceled, but not everything was stopped: {running}{why} Look at these hosts and end what is left there.",
        "已取消，但未能全部停止：{running}{why}请登录这些主机并结束残留进程。",
        running=Text("".join(text.en for text in going_on), "".join(text.zh for text in going_on)),
        why=Text(" ".join(text.en for text in why), "".join(text.zh for text in why)),
    )


def not_halted(running: Mapping[str, Sequence[str]], why: list[Text]) -> Trouble:
    """Say what a stop-loss could not end of the failed attempt, host by host."""
    going_on = [
        Text("On {host} something still runs: {said} ", "主机 {host} 上仍有进程在运行：{said} ").fill(host=host, said=" ".join(said) or "-")
        for host, said in running.items()
    ]
    return _trouble(
        "not_halted",
        "The engagement is stopped, but not everything of this attempt was ended on its targets: {running}{why} Look at these hosts and end what is "
        "left there.",
        "项目已止损，但该次尝试在目标主机上的进程未能全部终止：{running}{why}请登录这些主机并结束残留进程。",
        running=Text("".join(text.en for text in going_on), "".join(text.zh for text in going_on)),
        why=Text(" ".join(text.en for text in why), "".join(text.zh for text in why)),
    )


def taken_over(said: str) -> Trouble:
    """Say that another controller goes on with the attempt, so that nothing of it was stopped on its targets."""
    return _trouble(
        "taken_over",
        "Canceled here alone: another controller has taken this attempt over, so its job and its engine were left alone ({said}). Look there how it "
        "goes on; what is told here ends now.",
        "仅在本控制端取消：该次尝试已由另一控制端接管，其作业与引擎均未停止（{said}）。请在新控制端查看后续进展；本端记录到此为止。",
        said=_end(said),
    )


def replaced(said: str) -> Trouble:
    """Say that another controller goes on with the attempt, so that nothing of it is asked, collected or judged here any more."""
    return _trouble(
        "taken_over",
        "Another controller has taken this attempt over, so nothing of it is asked, collected or judged here any more ({said}). Its job goes on: "
        "look there. A retry asks again; to go on here after all, make a backup of this controller and restore that.",
        "该次尝试已由另一控制端接管，本控制端不再查询、收取证据或作出判定（{said}）。其作业仍在继续，请在新控制端查看。重试将再次查询；"
        "如需改回由本控制端继续，请备份本控制端并恢复该备份。",
        said=_end(said),
    )


STRANDED = "stranded"


def stranded(node: str, silent_s: float) -> Trouble:
    """Say that the node of an attempt is silent and that no other one may go on with it, since its evidence exists there only."""
    return _trouble(
        STRANDED,
        "The node {node}, which moves this attempt, has been silent for more than {seconds} s, and no other node sees its evidence store: going on "
        "elsewhere would lose what was collected. It goes on by itself once {node} is back, or once its evidence folder is mounted on another node "
        "(docs/operations.md, “Several nodes”). A cancel is carried out by any node.",
        "负责本次尝试的节点 {node} 已超过 {seconds} 秒没有心跳，其他节点均看不到其证据目录；若由其他节点接手，已采集的证据将丢失。"
        "节点 {node} 恢复，或其证据目录挂载到其他节点后（见 docs/operations.md“Several nodes”一节），将自动继续。如需取消，任一节点均可执行。",
        node=node,
        seconds=f"{silent_s:g}",
    )


def is_stranded(problem: Mapping[str, Any] | None) -> bool:
    """Tell whether what stands on an attempt is that sentence."""
    return (problem or {}).get("code") == STRANDED


def not_heard(host: str, address: str) -> Text:
    """Say that a host did not answer in time whether everything was stopped on it."""
    return Text(
        "The host {host} ({address}) did not answer in time: what the attempt runs there may go on.",
        "主机 {host}（{address}）未在限时内应答，其上的作业可能仍在运行。",
    ).fill(host=host, address=address or "-")


def left_here(error: Text) -> Text:
    """Say that processes of the attempt on the controller itself go on."""
    return Text(
        "On the machine of Quadgate itself processes of the attempt did not end ({error}).",
        "Quadgate 所在机器上该次尝试的部分进程未能终止（{error}）。",
    ).fill(error=error)


def left_there(node: str) -> Text:
    """Say that a playbook of the attempt may go on on a node of Quadgate that fell silent."""
    return Text(
        "The node {node} of Quadgate, which ran a playbook of the attempt, does not answer: that playbook may go on until the node is back or off.",
        "执行该次尝试剧本的 Quadgate 节点 {node} 无应答：在该节点恢复或关机之前，该剧本可能仍在运行。",
    ).fill(node=node)


def stop_failed(error: Text, hosts: Iterable[str]) -> Trouble:
    """Say that the targets could not be told to stop, and which they are."""
    return _trouble(
        "not_stopped",
        "Canceled, but the targets could not be told to stop ({error}). Look at {hosts} and end what is left there.",
        "已取消，但无法通知目标主机停止（{error}）。请登录 {hosts} 并结束残留进程。",
        error=error,
        hosts=", ".join(hosts) or "-",
    )


def reports_failed(error: Text) -> Trouble:
    """Say that the report could not be written and that the verdict stands."""
    return _trouble(
        "report_failed",
        "The verdict stands, but its report could not be written: {error}. Put it right and retry: only the report is made again.",
        "判定结果有效，但报告生成失败：{error}。排除后重试：只会重新生成报告。",
        error=Text(_end(error.en), _end(error.zh)),
    )


def _end(message: str) -> str:
    """Return a foreign message as a part of a sentence."""
    return " ".join(message.split()).rstrip(".。 ") or "no message"
