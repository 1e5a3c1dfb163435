"""Which URL is fetched next, and when? `frontier.Frontier` is the entry point; the engine drives it.

`host_table` (hosts in memory), `workbench` (whose turn), `task_maker` (what a host may be asked), `outstanding`
(tasks that are out), `task_end` (what follows when one ends), `visits` (known URLs that are due),
`effects` (what its driver is to do).
"""
