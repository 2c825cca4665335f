"""Every problem that keeps a result file, or a comparison of files, from being used: its code and what it says. docs/importing-results.md shows them.

A test holds that these are the codes that the readers of client files, the comparison, and what they read with, can name, and no others.
"""

from __future__ import annotations

from types import MappingProxyType

from gates.text import Text

OF_A_FILE: MappingProxyType[str, Text] = MappingProxyType(
    {
        "failed_requests": Text("requests failed; the tool's own figures are of the others", "有请求失败；工具自身的数值只含其余请求"),
        "empty_streams": Text(
            "requests count as answered though no token came: an HTTP 200 stream with an error in it, or an empty one",
            "有请求被计为已应答，却没有词元：HTTP 200 的流内报错，或为空流",
        ),
        "failures_unknown": Text("the file does not say how many failed", "文件未说明失败数"),
        "first_token_doubtful": Text(
            'the wait for the first token stands after the "first token": a chunk without text (the role chunk) was taken for it',
            "等待首个词元的时间出现在“首个词元”之后：无文本的数据块（角色块）被当作首个词元",
        ),
        "rows_incomplete": Text("the lists of a request each were cut off", "逐请求列表不完整"),
        "count_conflict": Text("the file contradicts itself in how many requests there were", "文件中的请求数自相矛盾"),
        "tokens_conflict": Text("the file contradicts itself in how many tokens there were", "文件中的词元数自相矛盾"),
        "p50_conflict": Text("the stated TTFT p50 is not that of the rows", "所述 TTFT p50 与明细不符"),
        "statistics_conflict": Text(
            "a TTFT p50 beside a mean, a p99 or a duration with which it cannot stand; a mean or p99 that is not that of the rows; TTFT and decode "
            "time that together are shorter than the request, a first token sooner than a tenth of a decode step, a TTFT that is not "
            "`first_token_time - submit_time`: the file was edited, or a version counts otherwise",
            "TTFT p50 与均值、p99 或时长不可能并存；均值或 p99 与明细不符；TTFT 与解码时间之和短于请求；首个词元早于解码步的十分之一；TTFT 不等于 "
            "`first_token_time - submit_time`：文件被改动，或该版本的口径不同",
        ),
        "rate_conflict": Text(
            "no one duration explains the stated duration and every stated rate within their printed precision",
            "没有任何时长能在所印精度内同时解释所述时长与各速率",
        ),
        "impossible_flight": Text("more request time than concurrency x duration (Little's law)", "请求总时长大于并发数 × 时长（利特尔法则）"),
        "idle_flight": Text(
            "less than three quarters of concurrency x duration, every place idle once at the end allowed for",
            "请求总时长不足并发数 × 时长的四分之三（已扣除结尾处每个并发位的一次空闲）",
        ),
        "tier_conflict": Text("another concurrency was stated for the file than it names", "为文件指定的并发数与文件所述不同"),
        "several_runs": Text("runs were appended to one file; put each into a file of its own", "一个文件中追加了多轮结果；请分别存为单独文件"),
        "other_tool": Text("the file bears the signature of another client than the one that it is read as", "文件带有其他客户端的特征"),
        "unknown_version": Text("a version that the reader does not know: it does not guess", "读取器不认识的版本：不作猜测"),
        "unknown_shape": Text("a shape that the reader does not know: it does not guess", "读取器不认识的结构：不作猜测"),
        "unknown_unit": Text("a figure without its unit, or in another one", "数值缺少单位或单位不符"),
        "aggregated": Text("several runs, already taken together", "多轮结果已被汇总"),
        "not_finished": Text("the client was ended before it was done", "客户端未运行到结束"),
        "zero_samples": Text("nothing was measured", "没有测量结果"),
        "missing_field": Text("a field that is needed is not there", "缺少所需字段"),
        "not_a_number": Text("a field holds what cannot be used as a number", "字段内容不能作为数值使用"),
        "not_available": Text("a field says that its value is not available (`N/A`)", "字段注明数值不可用（`N/A`）"),
        "impossible_value": Text("a value that nothing can have: its unit or its source is doubtful", "不可能出现的数值：单位或来源存疑"),
        "sentinel_value": Text("a value that stands for not known", "表示未知的数值"),
        "duplicate_key": Text("a key stands twice in one object", "同一对象中键重复"),
        "duplicate": Text("a field of a text stands twice", "文本中的字段重复"),
        "not_json": Text("it is not whole JSON", "不是完整的 JSON"),
        "not_csv": Text("it is not whole CSV", "不是完整的 CSV"),
        "truncated": Text("it ends within a line", "末行不完整"),
        "text_before_json": Text("text stands before the JSON", "JSON 之前有文字"),
        "text_after_json": Text("text stands behind the JSON", "JSON 之后有文字"),
        "not_text": Text("it is not UTF-8 text", "不是 UTF-8 文本"),
        "empty": Text("it is empty", "文件为空"),
        "nothing_found": Text("nothing of the format of the client stands in it", "未找到该客户端格式的任何内容"),
        "too_large": Text("it is larger, or holds more values, than any client writes", "文件或其中的值超过任何客户端的输出规模"),
        "unknown_tool": Text("there is no reader of this name", "没有该名称的读取器"),
    }
)
OF_A_COMPARISON: MappingProxyType[str, Text] = MappingProxyType(
    {
        "same_file": Text(
            "one file, by its content, is there twice: for both arms, or within one", "同一内容的文件出现两次：用于两个对照组，或在同一对照组内"
        ),
        "missing_figure": Text("a file lacks a figure that a comparison needs", "文件缺少比较所需的数值"),
        "missing_tier": Text("an arm has no file of a tier", "某对照组缺少某档位的文件"),
        "duplicate_tier": Text("an arm has several files of one tier; none is chosen", "某对照组同一档位有多个文件，不作挑选"),
        "mixed_tools": Text(
            "the files of one tier are of two clients, which define their figures differently", "同一档位的文件来自两种客户端，数值定义不同"
        ),
        "unequal_work": Text("model, requests or lengths differ between the arms", "两个对照组的模型、请求数或长度不同"),
        "unequal_client": Text("endpoint, backend or tokenizer differ between the arms", "两个对照组的接口、后端或分词器不同"),
        "unequal_definition": Text(
            "one arm's figure is worked out from its requests, the other's is the tool's own", "一方数值由逐请求明细计算，另一方为工具自身所报"
        ),
        "several_models": Text("the files are of several models", "文件涉及多个模型"),
        "drop_gain_conflict": Text(
            "of a pair whose files tell no decode time: with C in flight a request takes C / throughput, and its time behind the first token more "
            "than doubled; a missed limit stays missed",
            "文件未给出解码时间的一对：并发为 C 时单个请求用时 C / 吞吐，而其首个词元之后的时间增加一倍以上；未达到的限值仍为未达到",
        ),
    }
)
