"""The text that a new engagement file begins with: the whole form of one, with the places to fill in."""

STARTER = """\
engagement:
  code: ACME-2026-01
  customer: 客户法定名称
  vendor: 供方法定名称
  site: 机房、机柜
  contract: 合同编号
  people:
    vendor:
      - {login: li.wei, name: 李伟, title: 交付工程师, roles: [engineer]}
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
  hosts:
    gpu01: {groups: [engine, loadgen], address: 10.0.0.11, credential: ssh-gpu01}
    array01: {groups: [storage], address: 10.0.0.21, credential: ssh-array01}
plan: {}          # only what differs from the default plan
"""
