"""The text that a new engagement file begins with: a whole, valid one, with places to fill in. docs/guide explains each field."""

from __future__ import annotations

STARTER = """\
engagement:
  code: ACME-2026-01
  customer: 需方法定名称
  vendor: 供方法定名称
  site: 机房、机柜
  contract: 合同编号
  people:           # 登录名须与 quadgate user add 一致；每方至少一名 approver
    vendor:
      - {login: li.wei, name: 李伟, title: 交付工程师, roles: [engineer]}
      - {login: chen.jing, name: 陈静, title: 交付负责人, roles: [approver]}
    customer:
      - {login: wang.fang, name: 王芳, title: 验收负责人, roles: [approver]}
order:
  model: FX100
  quantity: 1
  lines:
    - {kind: array, model: FX100, quantity: 1, firmware: ["3.2.1"]}
packing_list:
  - {kind: array, model: FX100, serial: 序列号, host: array01}
targets:
  simulated: false
  hosts:            # credential: <状态目录>/credentials/ 下的 SSH 私钥文件；host_key: 主机公钥；独立负载机见用户指南（attend）
    gpu01: {groups: [engine, loadgen], connection: ssh, address: 10.0.0.11, user: quadgate, credential: ssh-gpu01, host_key: ssh-ed25519 AAAA}
    array01: {groups: [storage], connection: ssh, address: 10.0.0.21, user: quadgate, credential: ssh-array01, host_key: ssh-ed25519 AAAA}
  engine:           # kind: vllm；其余各键（并行度、offload、fabric、array、volume）见 playbooks/inventories/example/engagement.yaml
    {kind: vllm, accelerator: rocm, install: container, runtime: docker, image: "镜像@sha256:摘要", supervision: process, port: 18400,
     model: 模型名称, model_dir: /models/模型目录}
  arms: {recompute: {}, baseline: {}, candidate: {}, placebo: {}}
plan: {}            # 只写与默认计划不同之处
"""
