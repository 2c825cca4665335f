"""The words of the joint test (DESIGN section 3), explained in both languages for the page of words."""

from __future__ import annotations

from dataclasses import dataclass

from gates.text import Text


@dataclass(frozen=True)
class Entry:
    """One word: its anchor on the page, how it is called, what it means."""

    id: str
    name: Text
    means: Text


ENTRIES = (
    Entry(
        "engagement",
        Text("engagement", "联测项目"),
        Text(
            "One customer's joint test: parties, site, contract, targets, plan, calendar.",
            "一个客户的联合测试：双方、现场、合同、目标、计划、日程。",
        ),
    ),
    Entry(
        "plan",
        Text("plan", "计划"),
        Text(
            (
                "Limits, workload and decision rule under one hash. It is sealed once a person of each party has approved that hash, "
                "before any data exist; a change is a new revision, agreed again."
            ),
            "限值、负载和判定规则，以一个哈希标识。在产生任何数据之前，双方各一人确认该哈希后即封存；更改即为新修订，须重新确认。",
        ),
    ),
    Entry(
        "gate",
        Text("gate", "门禁"),
        Text(
            "One of four stages, in this order: G1 arrival acceptance, G2 single-node baseline, G3 main gate, G4 72 h stability.",
            "依次通过的四个阶段之一：G1 到货验收、G2 单机基线、G3 主门禁、G4 72h 稳定性。",
        ),
    ),
    Entry(
        "attempt",
        Text("attempt", "尝试"),
        Text(
            "One try at one gate. It counts from its first measured request; all tries are kept and printed, none replaces another.",
            "对一道门禁的一次测试。自首个被测量的请求起计入次数；全部尝试均保留并列入报告，互不替代。",
        ),
    ),
    Entry(
        "arm",
        Text("arm", "对照组"),
        Text(
            (
                "One configuration under measurement. baseline: NFS or local disk. candidate: the product. recompute: no external KV at "
                "all. placebo: the product switched on with nothing to find in it. baseline_tuned: the baseline's medium with the "
                "product's software settings, which tells what the array does from what a setting does."
            ),
            (
                "一种被测配置。基线：NFS 或本地盘。被测产品。重算：完全不使用外部 KV。安慰剂：产品已启用，但其中无可命中的内容。调优基线"
                "：基线介质加被测产品的软件设置，用以区分存储与设置各自的作用。"
            ),
        ),
    ),
    Entry(
        "run",
        Text("run", "轮次"),
        Text(
            "One pass of one arm over all tiers. Arms alternate in whole runs (ABBA).",
            "一个对照组完整测过全部档位的一遍。各组以整轮交替（ABBA）。",
        ),
    ),
    Entry(
        "tier",
        Text("tier, c8", "档位，c8"),
        Text(
            "How many requests are in flight at once: c8 is eight.",
            "同时在途的请求数：c8 即 8 个。",
        ),
    ),
    Entry(
        "cell",
        Text("cell", "测点"),
        Text(
            "One point of measurement: run, concurrency, context, output, parallel layout, engine instances.",
            "一个测量点：轮次、并发、上下文长度、输出长度、并行方式、引擎实例数。",
        ),
    ),
    Entry(
        "cold-recovery",
        Text("cold recovery", "冷恢复"),
        Text(
            ("Prefixes were stored earlier, the GPU cache and the page cache are empty: each request loads its KV from the external tier."),
            "前缀已提前写入，GPU 缓存和页缓存均为空：每个请求都从外部存储层加载 KV。",
        ),
    ),
    Entry(
        "rehearsal",
        Text("rehearsal", "预演"),
        Text(
            "Unlimited practice: never judged, marked on every page, counted and dated in the report.",
            "不限次数的练习：不作判定，每页均有标注，在报告中计数并注明日期。",
        ),
    ),
    Entry(
        "check",
        Text("check", "检查项"),
        Text(
            "One question with one limit. A blocking check decides; an advisory one is told beside.",
            "一个问题对应一个限值。否决项决定结果；参考项仅供了解。",
        ),
    ),
    Entry(
        "claim",
        Text("claim", "有效性断言"),
        Text(
            (
                "One statement of validity about an arm, with the evidence that proves it. Validity comes first: performance is judged "
                "on valid measurements only."
            ),
            "关于一个对照组有效性的一条陈述，附证明它的证据。有效性在先：只对有效的测量判定性能。",
        ),
    ),
    Entry(
        "verdict",
        Text("verdict", "判定"),
        Text(
            (
                "pass: every blocking check holds on valid measurements. conditional: it passes inside a guard band, above the agreed "
                "band, or resting on one baseline run; both parties decide. fail: a blocking check is missed on a valid measurement. "
                "inconclusive: evidence is missing or does not decide. invalid: the rig, the client or the baseline was not sound, so "
                "nothing is said about the product."
            ),
            (
                "通过：有效测量下全部否决项成立。有条件通过：处于保护带内、高于约定区间或仅依赖一轮基线，由双方决定。不通过：有效测量下有"
                "否决项未达标。无法判定：证据缺失或不足以判定。无效：测试环境、客户端或基线不可靠，对产品不作任何结论。"
            ),
        ),
    ),
    Entry(
        "run-status",
        Text("run status", "运行状态"),
        Text(
            (
                "How an attempt goes: queued, running, waiting for a person, lost contact, finished, canceled, error. It is never mixed "
                "with the verdict."
            ),
            "尝试的进行状况：排队、运行中、等待人工、失去联系、已结束、已取消、出错。与判定互不混淆。",
        ),
    ),
    Entry(
        "deviation",
        Text("deviation, waiver, punch item", "偏离、让步、遗留项"),
        Text(
            (
                "Done otherwise than planned; accepted as it is by both parties; still to be done. Each has an owner, a reason and a due "
                "date. A waiver becomes a pass in no statistic."
            ),
            "实际做法与计划不同；双方按现状接受；仍待完成。各有责任人、原因和期限。让步在任何统计中均不计为通过。",
        ),
    ),
    Entry(
        "stop-loss",
        Text("stop-loss", "止损"),
        Text(
            (
                "The engagement is stopped by a fail of a gate for which the plan says so. Only both parties together lift it, and the "
                "fail stays in every report."
            ),
            "计划规定须止损的门禁不通过时，项目即停止。只有双方共同确认才能解除，且该不通过保留在每份报告中。",
        ),
    ),
    Entry(
        "approval",
        Text("approval", "确认"),
        Text(
            (
                "One immutable record of one person's decision for one party, bound to the hash of its object. It seals a plan, consents "
                "to a conditional verdict, signs off a gate. Nobody acts for both parties."
            ),
            "一个人代表一方所作决定的不可更改的记录，与对象的哈希绑定。用于封存计划、同意有条件通过、签署门禁。任何人不得代表双方。",
        ),
    ),
    Entry(
        "evidence",
        Text("evidence, bundle", "证据、证据包"),
        Text(
            (
                "The raw files that a step brought back, each named by its SHA-256. The bundle holds all of them with the plan: from it "
                "anybody recomputes the verdict, offline."
            ),
            "步骤取回的原始文件，各以其 SHA-256 命名。证据包含全部证据和计划：任何人均可据此离线重新得出判定。",
        ),
    ),
    Entry(
        "ttft",
        Text("TTFT, p50", "TTFT、p50"),
        Text(
            "Time to the first token: from sending a request to its first text. p50 is the median of one run; G3 asks that it falls.",
            "首词元延迟：从发出请求到收到首段文字的时间。p50 为一轮的中位数；G3 要求其下降。",
        ),
    ),
)
