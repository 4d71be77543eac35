INSERT INTO run (key, value) VALUES
('complete', 'true'),
('host', 'node-01'),
('id', '7e57ab1e-0000-4000-8000-000000000001'),
('interval_ns', '100000000'),
('command', '["./solver", "--steps", "2"]'),
('anchor_mono_ns', '5000026000000'),
('anchor_wall_ns', '1793000000026000000'),
('boot_id', 'b0070000-0000-4000-8000-000000000000'),
('machine', 'b0070000-0000-4000-8000-000000000000'),
('memory_total_bytes', '540000000000'),
('n_cores', '96'),
('expected_cores', '96'),
('n_gpus_system', '1'),
('user', 'ada'),
('step', 'step'),
('job_id', '4242'),
('job_step', '0'),
('job_name', 'solver'),
('job_user', 'ada'),
('job_cluster', 'atlas'),
('job_launcher', 'slurm'),
('rank', '1'),
('local_rank', '1'),
('world_size', '3'),
('local_size', '3'),
('n_nodes', '1'),
('node', 'node-01');
INSERT INTO sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, self_rss_bytes, main_cpu_ns, descendants_cpu_ns, system_memory_bytes, main_rss_bytes, descendants_rss_bytes, main_pss_bytes, descendants_pss_bytes, main_threads, descendants_threads, processes) VALUES
(5000026000000, 0, 0, 0, 0, 0, 0, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5000126000000, 50000, 1872000000, 7728000000, 0, 100000000, 500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000226000000, 100000, 3821999999, 15378000000, 0, 200000000, 1000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000326000000, 150000, 5772000000, 23028000000, 0, 300000000, 1500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000426000000, 200000, 7722000000, 30678000000, 0, 400000000, 2000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000526000000, 250000, 9672000000, 38328000000, 0, 500000000, 2500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000626000000, 300000, 11622000000, 45978000000, 0, 600000000, 3000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000726000000, 350000, 13572000000, 53628000000, 0, 700000000, 3500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000826000000, 400000, 15522000000, 61278000000, 0, 800000000, 4000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000926000000, 450000, 17471999999, 68928000000, 0, 900000000, 4500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001026000000, 500000, 19422000000, 76578000000, 0, 1000000000, 5000000000, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5001126000000, 550000, 21072000000, 84528000000, 0, 1100000000, 5400000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001226000000, 600000, 23022000000, 92178000000, 0, 1200000000, 5900000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001326000000, 650000, 24971999999, 99828000000, 0, 1300000000, 6400000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001426000000, 700000, 26832000000, 107568000000, 0, 1400000000, 6870000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001520000000, 750000, 27975000000, 115449000000, 0, 1494000000, 7270000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1);
INSERT INTO device (id, kind, name, uuid, device, idx, source, provenance, has_energy, resolution_uj, energy_range_uj, update_period_ns, update_jitter_ns, memory_total_bytes) VALUES
(0, 'package', 'package-0', NULL, 'intel-rapl:0', 0, 'powercap', 'measured', 1, 61, 262143328850, 1000000, 20000, NULL),
(1, 'dram', 'dram-0', NULL, 'intel-rapl:0:0', 0, 'powercap', 'measured', 1, 61, 262143328850, 1000000, 20000, NULL),
(2, 'gpu', 'gpu-0', 'GPU-6d5f1c9e-0000-4000-8000-000000000000', 'NVIDIA H100 80GB HBM3', 0, 'nvml', 'measured', 1, 1000, NULL, 20000000, 400000, 85520809984);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj, power_mw, utilization_percent, target_utilization_percent, others_utilization_percent, target_memory_bytes, target_processes, others_processes, temperature_c, sm_clock_mhz) VALUES
(5000026000000, 2, NULL, NULL, NULL, NULL, 40, 40, 20000000000, 1, 5, NULL, NULL),
(5000126000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000226000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000326000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000426000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000526000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000626000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000726000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000826000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5000926000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5001026000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5001126000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5001226000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5001326000000, 2, NULL, NULL, NULL, NULL, 40, 80, 20000000000, 1, 5, NULL, NULL),
(5001426000000, 2, NULL, NULL, NULL, NULL, 10, 20, 20000000000, 1, 5, NULL, NULL),
(5001520000000, 2, 0, 5568023670, 312000, 40, 0, 40, 20000000000, 1, 5, 52, 1980);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj, temperature_c) VALUES
(5001520000000, 0, 0, 2225917890, 52);
INSERT INTO device_sample (t_ns, device, energy_uj, energy_raw_uj) VALUES
(5001520000000, 1, 0, 2611598580);
INSERT INTO process (pid, start_ns, end_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4243, 5000025995000, 5001520000000, 4000, 'solver', 8764000000, 8000000000, 1, 1);
INSERT INTO span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) VALUES
(1, NULL, 4243, 4243, 'setup', 5000300000000, 5000800000000, 'nested', 'ended'),
(2, NULL, 4243, 4243, 'step', 5000800000000, 5001120000000, 'nested', 'ended'),
(3, 2, 4243, 4243, 'forward', 5000800000000, 5001100000000, 'nested', 'ended'),
(4, 2, 4243, 4243, 'MPI_Allreduce', 5001100000000, 5001120000000, 'nested', 'ended'),
(5, NULL, 4243, 4243, 'step', 5001120000000, 5001440000000, 'nested', 'ended'),
(6, 5, 4243, 4243, 'forward', 5001120000000, 5001420000000, 'nested', 'ended'),
(7, 5, 4243, 4243, 'MPI_Allreduce', 5001420000000, 5001440000000, 'nested', 'ended');
INSERT INTO event (t_ns, kind, text) VALUES
(5001520000000, 'sensors', 'package-0: taken over'),
(5001520000000, 'sensors', 'dram-0: taken over'),
(5001520000000, 'sensors', 'gpu-0: taken over');
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000026000000, 5001520000000, 1793000000026000000, 0, 'made', 'node-01', 4243, '["./solver"]', 0, 1, 'rusage', 16, 0, 1494000000, 7270000000, 1, 1, 8000000000, 8000000000, 4096, 1494000, 747000, 5100000, 14);
