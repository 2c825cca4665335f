"""What each declared quantity is called in Chinese; its English name is the declaration's own word. A test holds that every quantity has one."""

from __future__ import annotations

from types import MappingProxyType

from gates.text import Text

_ZH: MappingProxyType[str, str] = MappingProxyType(
    {
        # G1
        "distinct receivers": "不同签收人数",
        "photos": "照片数",
        "hosts": "主机数",
        "packed items": "装箱件数",
        "serial numbers found": "找到的序列号数",
        "smallest capacity": "最小容量",
        "critical_warning": "严重告警",
        "media_errors": "介质错误数",
        "power_on_hours": "通电时长",
        "percentage_used": "寿命消耗",
        "available_spare": "可用备用空间",
        "drives that call themselves unsound": "自报异常的硬盘数",
        "drives read": "已读取硬盘数",
        "(fastest - slowest) / fastest": "（最快 − 最慢）/ 最快",
        "read rate / link rate": "读取速率 / 链路速率",
        "lowest PCIe width": "最低 PCIe 宽度",
        "lowest PCIe speed": "最低 PCIe 速率",
        "smallest active MTU": "最小生效 MTU",
        "lowest port speed": "最低端口速率",
        "GPUs": "GPU 数",
        "failed commands logged": "记录的失败命令数",
        "newest self-test result": "最近一次自检结果",
        "paths not live": "非 live 路径数",
        "fatal and non-fatal errors": "致命与非致命错误数",
        "ports without RoCE v2": "无 RoCE v2 的端口数",
        "lossless priority": "无损优先级",
        "smallest MTU": "最小 MTU",
        "errors counted": "错误计数",
        "alarms raised": "告警数",
        "bandwidth / port speed": "带宽 / 端口速率",
        "sizes and speeds": "容量与速率",
        "ECC errors": "ECC 错误数",
        "PCIe width": "PCIe 宽度",
        "blocks that differ": "不同的固件块数",
        "(best - worst interval) / best": "（最优 − 最差区间）/ 最优",
        "hosts whose processors are not as they should be": "处理器不符的主机数",
        "ways in which the GPUs are divided": "GPU 分区方式数",
        "links that are not as they should be": "不符的链路数",
        "distance to the GPU's own threshold": "距 GPU 自身阈值的余量",
        "causes of throttling": "降频原因数",
        "packets repeated or refused": "重传或拒收的包数",
        "errors lost or counted between two readings": "两次读取间丢失或新增的错误数",
        "bytes written / capacity": "写入字节 / 容量",
        "unsafe shutdowns": "异常断电次数",
        "highest temperature": "最高温度",
        "time above the warning or critical temperature": "超过告警或临界温度的时长",
        "lines that tell a fault": "故障日志行数",
        "code points with another priority": "优先级不符的码点数",
        "paths over another transport": "传输方式不符的路径数",
        "live paths": "live 路径数",
        "frequency policies with another governor": "调频策略不符的数目",
        "nodes without memory, and engine hosts that differ": "无内存的节点与不一致的引擎主机数",
        "parameters that are missing or differ": "缺失或不符的参数数",
        "storms detected": "检测到的风暴数",
        "blocks and symbols not corrected": "未纠正的块与符号数",
        # every gate that measures
        "problems": "问题数",
        "claims": "断言数",
        "ttft_p50_cv": "TTFT p50 变异系数",
        "throughput_cv": "吞吐变异系数",
        "members missing or failed": "缺失或故障的成员数",
        "stripe width / (members x stripe unit)": "条带宽度 /（成员数 × 条带单元）",
        "mounts that differ": "不符的挂载数",
        "client_cpu": "客户端处理器占用",
        "pause_share": "暂停时间占比",
        "port_errors": "端口错误数",
        "corrected_bit_ratio": "FEC 纠正比特占比",
        "clock_step": "时钟跳变",
        "page_cache_growth": "页缓存增长",
        # G3
        "failures": "失败请求数",
        "external_hits": "外部命中占比",
        "output_identity": "输出差异",
        "kv_load_errors": "KV 加载失败数",
        "ttft_p50_drop": "TTFT p50 降幅",
        "throughput_gain": "吞吐提升",
        "ttft_p99_ratio": "TTFT p99 之比",
        "tpot_p99_ratio": "TPOT p99 之比",
        "ttft_p50": "TTFT p50",
        "recompute_speedup": "相对重算的加速比",
        "model_load_speedup": "模型加载加速比",
        "checkpoint_speedup": "检查点写入加速比",
        "tier_read_bandwidth": "外部层读取带宽",
        "least share of one request": "单个请求的最小占比",
        "failures to store": "写入失败数",
        # G4
        "duration": "时长",
        "clock_restarts": "重新计时次数",
        "engine_restarts": "引擎重启次数",
        "error_rate": "错误率",
        "error_budget_short": "短窗错误预算",
        "error_budget_long": "长窗错误预算",
        "drift_ttft_p50": "TTFT p50 漂移",
        "drift_throughput": "吞吐漂移",
        "drift_ttft_p99": "TTFT p99 漂移",
        "excursion_ttft_p50": "TTFT p50 时段偏离",
        "excursion_throughput": "吞吐时段偏离",
        "excursion_hits": "命中时段偏离",
        "steady_ttft_p50": "TTFT p50 稳态",
        "steady_throughput": "吞吐稳态",
        "leak": "内存增长",
        "leak_fds": "句柄增长",
        "leak_threads": "线程增长",
        "leak_kv": "KV 目录增长",
        "telemetry_coverage": "遥测覆盖率",
        "telemetry_gap": "遥测最大缺口",
        "counter_{name}": "计数器 {name} 的增量",
        "watched_{name}": "计数 {name} 的增量",
        "sentinel_answers": "哨兵回答不符数",
        "injection_{name}": "注入 {name} 后的失败数",
        "drives that came or went": "出现或消失的硬盘数",
        "distance to the drive's own threshold": "距硬盘自身阈值的余量",
        "growth of thermal counters": "温控计数增量",
        "growth of media errors": "介质错误增量",
        "drives with a warning bit": "带告警位的硬盘数",
        "fall of available spare": "可用备用空间下降",
        "growth of percentage used": "寿命消耗增量",
        "readings with a path that is not live": "存在非 live 路径的读数数",
        "growth of thermal residencies": "温控时长增量",
        "throttled readings / readings": "降频读数 / 全部读数",
    }
)
_UNITS: MappingProxyType[str, Text] = MappingProxyType({"lanes": Text("lanes", "条通道")})


def quantity_name(quantity: str, **words: str | Text) -> Text:
    """Return a declared quantity as people read it; its placeholders are filled. An empty one stays empty."""
    return Text(quantity, _ZH[quantity]).fill(**words) if quantity else Text("", "")


def unit_name(unit: str) -> Text:
    """Return a unit as people read it: a symbol is itself in every language."""
    return _UNITS.get(unit, Text(unit, unit))


def named() -> frozenset[str]:
    """Return the quantities that have a name."""
    return frozenset(_ZH)
