"""The text that a new engagement file begins with, in the reader's language: whole, with places to fill in. docs/guide explains each field.

What is to be filled in stands between angle brackets; app/engagements/placeholders.py refuses a file in which one is left.
"""

from __future__ import annotations

from app.kit.i18n import known

_SHAPE = """\
# {fill}
engagement:
  code: {code}
  customer: {customer}
  vendor: {vendor}
  site: {site}
  contract: {contract}
  people:           # {people}
    vendor:
      - {{login: {login}, name: {name}, title: {title}, roles: [engineer]}}
      - {{login: {login}, name: {name}, title: {title}, roles: [approver]}}
    customer:
      - {{login: {login}, name: {name}, title: {title}, roles: [approver]}}
order:
  model: {model}
  quantity: 1
  lines:            # {lines}
    - {{kind: array, model: {model}, quantity: 1, firmware: [{firmware}]}}
packing_list:       # {packing}
  - {{kind: array, model: {model}, serial: {serial}, host: array01}}
targets:
  simulated: false
  hosts:            # {hosts}
    gpu01: {{groups: [engine, loadgen], connection: ssh, address: {address}, user: quadgate, credential: ssh-gpu01, host_key: {key}}}
    array01: {{groups: [storage], connection: ssh, address: {address}, user: quadgate, credential: ssh-array01, host_key: {key}}}
  engine:           # {engine}
    {{kind: vllm, accelerator: rocm, install: container, runtime: docker, image: {image}, supervision: process, port: 18400,
     model: {llm}, model_dir: {folder}}}
  arms: {{recompute: {{}}, baseline: {{}}, candidate: {{}}, placebo: {{}}}}
plan: {{}}            # {plan}
"""
_WORDS = {
    "en": {
        "fill": "Replace everything that stands <between angle brackets>, brackets included.",
        "code": "<CODE-2026-01>",
        "customer": "<legal name of the customer>",
        "vendor": "<legal name of the vendor>",
        "site": "<machine room and rack>",
        "contract": "<number of the contract>",
        "people": "logins as in quadgate user add; at least one approver of each party",
        "login": "<login>",
        "name": "<name>",
        "title": "<title>",
        "model": "<model of the array>",
        "lines": 'one for each model, e.g. {kind: drive, model: ..., quantity: 24, firmware: ["..."], capacity: "7.68 TB"}',
        "firmware": "<version>",
        "packing": "one entry a piece by its serial number; what has none is counted: {kind: cable, model: ..., quantity: 4}",
        "serial": "<serial number>",
        "hosts": "credential: file of the private SSH key in <state folder>/credentials/; host_key: public key of the host; "
        "a load generator of its own: see the guide (attend)",
        "address": "<IP address>",
        "key": "<public key of the host>",
        "engine": "kind: vllm; its other keys (parallelism, offload, fabric, array, volume): playbooks/inventories/example/engagement.yaml",
        "image": "<image@sha256:digest>",
        "llm": "<name of the model>",
        "folder": "</models/folder of the model>",
        "plan": "only what differs from the default plan",
    },
    "zh_CN": {
        "fill": "请替换所有 <尖括号内的内容>，连同尖括号。",
        "code": "<项目编号，如 ACME-2026-01>",
        "customer": "<需方法定名称>",
        "vendor": "<供方法定名称>",
        "site": "<机房、机柜>",
        "contract": "<合同编号>",
        "people": "登录名须与 quadgate user add 一致；每方至少一名 approver",
        "login": "<登录名>",
        "name": "<姓名>",
        "title": "<职务>",
        "model": "<阵列型号>",
        "lines": '每种型号一行，例如 {kind: drive, model: ..., quantity: 24, firmware: ["..."], capacity: "7.68 TB"}',
        "firmware": "<固件版本>",
        "packing": "每件一项，填序列号；无序列号的物品填数量，例如 {kind: cable, model: ..., quantity: 4}",
        "serial": "<序列号>",
        "hosts": "credential: <状态目录>/credentials/ 下的 SSH 私钥文件；host_key: 主机公钥；独立负载机见用户指南（attend）",
        "address": "<IP 地址>",
        "key": "<主机公钥>",
        "engine": "kind: vllm；其余各键（并行度、offload、fabric、array、volume）见 playbooks/inventories/example/engagement.yaml",
        "image": "<镜像@sha256:摘要>",
        "llm": "<模型名称>",
        "folder": "</models/模型目录>",
        "plan": "只写与默认计划不同之处",
    },
}


def starter(locale: str) -> str:
    """Return the sample in the language of a locale."""
    return _SHAPE.format(**_WORDS[known(locale)])
