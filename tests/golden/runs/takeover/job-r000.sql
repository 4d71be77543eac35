INSERT INTO run (key, value) VALUES
('complete', 'false'),
('host', 'node-01'),
('id', '7e57ab1e-0000-4000-8000-000000000000'),
('interval_ns', '100000000'),
('command', '["./solver", "--steps", "4"]'),
('anchor_mono_ns', '5000013000000'),
('anchor_wall_ns', '1793000000013000000'),
('boot_id', 'b0070000-0000-4000-8000-000000000000'),
('machine', 'b0070000-0000-4000-8000-000000000000'),
('memory_total_bytes', '540000000000'),
('n_cores', '96'),
('expected_cores', '96'),
('n_gpus_system', '2'),
('user', 'ada'),
('step', 'step'),
('job_id', '4242'),
('job_step', '0'),
('job_name', 'solver'),
('job_user', 'ada'),
('job_cluster', 'atlas'),
('job_launcher', 'slurm'),
('rank', '0'),
('local_rank', '0'),
('world_size', '4'),
('local_size', '2'),
('n_nodes', '2'),
('node', 'node-01');
INSERT INTO sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, self_rss_bytes, main_cpu_ns, descendants_cpu_ns, system_memory_bytes, main_rss_bytes, descendants_rss_bytes, main_pss_bytes, descendants_pss_bytes, main_threads, descendants_threads, processes) VALUES
(5000013000000, 0, 0, 0, 0, 0, 0, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5000113000000, 50000, 1271999999, 8328000000, 0, 100000000, 500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000213000000, 100000, 2622000000, 16578000000, 0, 200000000, 1000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000313000000, 150000, 3971999999, 24828000000, 0, 300000000, 1500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000413000000, 200000, 5321999999, 33078000000, 0, 400000000, 2000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000513000000, 250000, 6671999999, 41328000000, 0, 500000000, 2500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000613000000, 300000, 8021999999, 49578000000, 0, 600000000, 3000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000713000000, 350000, 9372000000, 57828000000, 0, 700000000, 3500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000813000000, 400000, 10721999999, 66078000000, 0, 800000000, 4000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000913000000, 450000, 12072000000, 74328000000, 0, 900000000, 4499999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1);
INSERT INTO device (id, kind, name, uuid, device, idx, source, provenance, has_energy, resolution_uj, energy_range_uj, update_period_ns, update_jitter_ns, memory_total_bytes) VALUES
(0, 'package', 'package-0', NULL, 'intel-rapl:0', 0, 'powercap', 'measured', 1, 61, 1500000000, 1000000, 20000, NULL),
(1, 'dram', 'dram-0', NULL, 'intel-rapl:0:0', 0, 'powercap', 'measured', 1, 61, 1500000000, 1000000, 20000, NULL),
(2, 'gpu', 'gpu-0', 'GPU-6d5f1c9e-0000-4000-8000-000000000000', 'NVIDIA H100 80GB HBM3', 0, 'nvml', 'measured', 1, 1000, NULL, 20000000, 400000, 85520809984);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj, temperature_c) VALUES
(5000013000000, 0, 0, 427968140, 52),
(5000113000000, 0, 15340000, NULL, 52),
(5000213000000, 0, 31265000, NULL, 52),
(5000313000000, 0, 47190000, NULL, 52),
(5000413000000, 0, 63115000, NULL, 52),
(5000513000000, 0, 79040000, NULL, 52),
(5000613000000, 0, 94965000, NULL, 52),
(5000713000000, 0, 110890000, NULL, 52),
(5000813000000, 0, 126815000, NULL, 52),
(5000913000000, 0, 142739999, NULL, 52);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj) VALUES
(5000013000000, 1, 0, 1072770329),
(5000113000000, 1, 2044801, NULL),
(5000213000000, 1, 4159801, NULL),
(5000313000000, 1, 6274801, NULL),
(5000413000000, 1, 8389801, NULL),
(5000513000000, 1, 10504801, NULL),
(5000613000000, 1, 12619801, NULL),
(5000713000000, 1, 14734801, NULL),
(5000813000000, 1, 16849801, NULL),
(5000913000000, 1, 18964801, NULL);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj, power_mw, utilization_percent, target_utilization_percent, others_utilization_percent, target_memory_bytes, target_processes, others_processes, temperature_c, sm_clock_mhz) VALUES
(5000013000000, 2, 0, 4423703670, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000113000000, 2, 28080000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000213000000, 2, 59280000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000313000000, 2, 90480000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000413000000, 2, 121680000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000513000000, 2, 152880000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000613000000, 2, 184080000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000713000000, 2, 215280000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000813000000, 2, 246480000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980),
(5000913000000, 2, 277680000, NULL, 312000, 40, 40, 0, 20000000000, 1, 0, 52, 1980);
INSERT INTO process (pid, start_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4242, 5000012995000, 4000, 'solver', 5544599999, 8000000000, 1, 1);
INSERT INTO span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) VALUES
(1, NULL, 4242, 4242, 'setup', 5000300000000, 5000800000000, 'nested', 'ended'),
(2, NULL, 4242, 4242, 'step', 5000800000000, NULL, 'nested', 'open'),
(3, 2, 4242, 4242, 'forward', 5000800000000, NULL, 'nested', 'open');
INSERT INTO segment (id, start_ns, wall_start_ns, shift_ns, boot_id, host, pid, command, complete) VALUES
(1, 5000013000000, 1793000000013000000, 0, 'made', 'node-01', 4242, '["./solver"]', 0);
