"""The sentences of the pipeline's rules, in both languages."""

from __future__ import annotations

from gates.model import Verdict
from gates.text import Text

STOPPED = Text(
    "Stop-loss: attempt {number} at {gate} failed, and the plan stops the joint test after a fail of {gate}. Only both parties together can lift it.",
    "已止损：{gate} 第 {number} 次尝试不通过，按计划 {gate} 不通过即终止联测。只有双方共同确认才能解除。",
)
NOT_CONCLUDED = Text(
    "Not concluded: the {allowed} attempts that the plan allows at {gate} are used up without a pass. Both parties close the engagement together.",
    "未得出结论：计划允许的 {gate} {allowed} 次尝试已用完且未通过。由双方共同关闭项目。",
)
NOT_SEALED = Text("The plan is not sealed: both parties approve its hash first.", "计划尚未封存：须先由双方确认其哈希。")
EARLIER_OPEN = Text("{gate} comes first and is not passed yet.", "须先通过 {gate}，目前尚未通过。")
JUDGE_AGAIN = Text(
    "Attempt {number} at {gate} was judged on a G2 baseline that no longer stands: it must be judged again.",
    "{gate} 第 {number} 次尝试所依据的 G2 基线已不再有效：须重新判定。",
)
EXTEND_FIRST = Text(
    "Attempt {number} at {gate} is inconclusive, and the plan foresees {pairs} more run pairs for this: extend it; it is not started afresh.",
    "{gate} 第 {number} 次尝试无法判定，计划已约定可补充 {pairs} 个轮次对：请补充该次尝试，而非重新开始。",
)
EXTENSION_OPEN = Text(
    "The extension of attempt {number} at {gate} ended in an error: retry it, or cancel it; then its first verdict stands and a new attempt counts.",
    "{gate} 第 {number} 次尝试的补充轮次因错误中断：请重试，或取消；取消后以首次判定为准，新的尝试另行计数。",
)
EXTEND_WHY = Text(
    "Attempt {number} at {gate} is inconclusive. {pairs} more run pairs can decide it; they are judged with the first ones and use up no attempt.",
    "{gate} 第 {number} 次尝试无法判定。可补充 {pairs} 个轮次对，与已有轮次合并判定；不占用尝试次数。",
)
ONLY_G3 = Text(
    "Only an attempt at the main gate (G3) is extended; a rehearsal or another gate is done anew.",
    "只有主门禁（G3）的尝试可以补充；预演和其他门禁重新进行。",
)
EXTENDED_ALREADY = Text(
    "Attempt {number} at {gate} was extended once already; a new attempt counts.", "{gate} 第 {number} 次尝试已补充过一次；新的尝试另行计数。"
)
NOT_INCONCLUSIVE = Text(
    "Only an inconclusive verdict is extended; attempt {number} at {gate} has another, or none.",
    "只有无法判定的结果可以补充；{gate} 第 {number} 次尝试并非如此。",
)
NOT_BY_PAIRS = Text(
    "More run pairs would not decide attempt {number} at {gate}, or its plan foresees none: its verdict says what would. A new attempt counts.",
    "补充轮次对无法解决 {gate} 第 {number} 次尝试，或其计划未约定补充：判定中已说明原因。新的尝试另行计数。",
)
RIG_CAUSE_AGREED = Text(
    "Both parties approved a rig cause for attempt {number} at {gate}: its runs prove nothing and are not added to. A new attempt may start.",
    "双方已认可 {gate} 第 {number} 次尝试为测试环境原因：其轮次不作依据，不予补充。可以开始新的尝试。",
)
PLAN_REPLACED = Text(
    "Attempt {number} at {gate} ran under a plan that both parties have replaced by a newer one since: nothing is added to it. "
    "A new attempt runs under the sealed plan.",
    "{gate} 第 {number} 次尝试所依据的计划已由双方封存的新修订取代：不再继续。新的尝试按已封存的计划进行。",
)
REPORT_FIRST = Text(
    "The report of attempt {number} at {gate} could not be written: retry that step first.",
    "{gate} 第 {number} 次尝试的报告未能生成：请先重试该步骤。",
)
RECTIFY = Text(
    "{gate} comes first: attempt {number} failed. After rectification a new attempt must pass.",
    "须先通过 {gate}：第 {number} 次尝试不通过，整改后须重新尝试并通过。",
)
CONSENT_MISSING = Text(
    "Attempt {number} at {gate} is conditional: the consent of {parties} is missing.", "{gate} 第 {number} 次尝试为有条件通过：尚缺{parties}的同意。"
)
SIGN_OFF_MISSING = Text(
    "The report of attempt {number} at {gate} is not signed off by {parties}, and the plan requires it before the next gate.",
    "{gate} 第 {number} 次尝试的报告尚未由{parties}签署，计划要求签署后才能进入下一门禁。",
)
SIGN_OFF_REJECTED = Text(
    "The report of attempt {number} at {gate} was rejected by {parties}, and the plan requires its sign-off before the next gate. When the reason is "
    "settled, whoever rejected it takes that back by approving; the rejection stays on record.",
    "{gate} 第 {number} 次尝试的报告，{parties}不同意签署，而计划要求签署后才能进入下一门禁。理由解决后，由作出该决定的人改为同意；原记录保留。",
)
ALREADY_PASSED = Text("{gate} is passed already by attempt {number}; it is not tried again.", "{gate} 已由第 {number} 次尝试通过，不再重复。")
USED_UP = Text("The {allowed} attempts that the plan allows at {gate} are used up.", "计划允许的 {gate} {allowed} 次尝试已用完。")
ACTIVE_ATTEMPT = Text(
    "Attempt {number} at {gate} is still going on; only one runs at a time.", "{gate} 第 {number} 次尝试仍在进行；同一时间只运行一个。"
)
ACTIVE_REHEARSAL = Text(
    "Rehearsal {number} at {gate} is still going on; only one runs at a time.", "{gate} 第 {number} 次预演仍在进行；同一时间只运行一个。"
)
JUDGED = Text(
    "This attempt has a verdict. A verdict is never retried; a new attempt counts anew.", "该尝试已有判定。判定不得重试；新的尝试另行计数。"
)
NOT_IN_ERROR = Text(
    "Only an attempt in error can be retried; the run status of this one is “{status}”.", "只有出错的尝试可以重试；该尝试的运行状态为“{status}”。"
)
NEWER = Text("A newer attempt at this gate exists; the older one stays as it ended.", "该门禁已有更新的尝试；较早的保持其结果。")

LABELS = {
    "none": Text("Nothing left to do", "无待办事项"),
    "seal": Text("Seal the plan", "封存计划"),
    "start": Text("Start {gate}", "启动 {gate}"),
    "follow": Text("Follow {gate}", "查看 {gate} 进展"),
    "form": Text("Fill in the form at {gate}", "填写 {gate} 表单"),
    "retry": Text("Retry {gate} from the failed step", "从失败步骤重试 {gate}"),
    "judge": Text("Judge {gate} again", "重新判定 {gate}"),
    "extend": Text("Extend {gate} by {pairs} run pairs", "补充 {gate} 的 {pairs} 个轮次对"),
    "consent": Text("Decide on the conditional {gate}", "决定 {gate} 有条件通过"),
    "sign_off": Text("Sign off {gate}", "签署 {gate}"),
    "lift": Text("Decide on the stop-loss", "决定是否解除止损"),
    "close": Text("Close the engagement", "关闭项目"),
}
RETRY_WHY = Text(
    "Attempt {number} at {gate} ended in an error. Mend the cause, then retry: what was collected is kept.",
    "{gate} 第 {number} 次尝试因错误结束。排除原因后重试：已采集的数据均保留。",
)
FIRST = Text("{gate} may start. It counts as attempt {number} of {allowed}.", "{gate} 可以启动。将计为第 {number} 次（共 {allowed} 次）。")
AGAIN_UNJUDGED = Text(
    "The last attempt at {gate} ended without a verdict. The next one counts as attempt {number} of {allowed}.",
    "{gate} 上一次尝试没有判定。下一次计为第 {number} 次（共 {allowed} 次）。",
)
AGAIN = {
    Verdict.FAIL: Text(
        "{gate} failed. After rectification a new attempt must pass; it counts as attempt {number} of {allowed}.",
        "{gate} 不通过。整改后须重新尝试并通过；计为第 {number} 次（共 {allowed} 次）。",
    ),
    Verdict.INVALID: Text(
        "The last attempt at {gate} is invalid and proves nothing. Mend the rig; the next one counts as attempt {number} of {allowed}.",
        "{gate} 上一次尝试无效，对产品不作结论。排除测试环境原因；下一次计为第 {number} 次（共 {allowed} 次）。",
    ),
    Verdict.INCONCLUSIVE: Text(
        "The last attempt at {gate} is inconclusive, and not extended. A new one does not continue it: it counts as attempt {number} of {allowed}.",
        "{gate} 上一次尝试无法判定，不再补充。新的尝试不是其延续：计为第 {number} 次（共 {allowed} 次）。",
    ),
    Verdict.CONDITIONAL: Text(
        "A party rejected the conditional at {gate}. The next attempt counts as attempt {number} of {allowed}.",
        "一方不同意 {gate} 有条件通过。下一次尝试计为第 {number} 次（共 {allowed} 次）。",
    ),
}
