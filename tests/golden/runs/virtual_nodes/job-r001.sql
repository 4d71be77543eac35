INSERT INTO run (key, value) VALUES
('complete', 'true'),
('host', 'node-02'),
('id', '7e57ab1e-0000-4000-8001-000000000001'),
('interval_ns', '100000000'),
('command', '["./solver", "--steps", "2"]'),
('anchor_mono_ns', '5000015000000'),
('anchor_wall_ns', '1793000000015000000'),
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
('local_rank', '0'),
('world_size', '2'),
('local_size', '1'),
('n_nodes', '2'),
('node', 'node-02');
INSERT INTO sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, self_rss_bytes, main_cpu_ns, descendants_cpu_ns, system_memory_bytes, main_rss_bytes, descendants_rss_bytes, main_pss_bytes, descendants_pss_bytes, main_threads, descendants_threads, processes) VALUES
(5000015000000, 0, 0, 0, 0, 0, 0, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5000115000000, 50000, 1350000000, 8250000000, 0, 100000000, 500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000215000000, 100000, 2699999999, 16500000000, 0, 200000000, 1000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000315000000, 150000, 4050000000, 24750000000, 0, 300000000, 1500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000415000000, 200000, 5400000000, 33000000000, 0, 400000000, 2000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000515000000, 250000, 6750000000, 41250000000, 0, 500000000, 2500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000615000000, 300000, 8100000000, 49500000000, 0, 600000000, 3000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000715000000, 350000, 9450000000, 57750000000, 0, 700000000, 3500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000815000000, 400000, 10800000000, 66000000000, 0, 800000000, 4000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000915000000, 450000, 12149999999, 74250000000, 0, 900000000, 4500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001015000000, 500000, 13349999999, 82649999999, 0, 999999999, 4925000000, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5001115000000, 550000, 14649999999, 90950000000, 0, 1100000000, 5400000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001215000000, 600000, 16000000000, 99200000000, 0, 1200000000, 5899999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001240000000, 650000, 16137500000, 101462500000, 0, 1225000000, 5924999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1);
INSERT INTO device (id, kind, name, uuid, device, idx, source, provenance, has_energy, resolution_uj, energy_range_uj, update_period_ns, update_jitter_ns, memory_total_bytes) VALUES
(0, 'package', 'package-0', NULL, 'intel-rapl:0', 0, 'powercap', 'measured', 1, 61, 262143328850, 1000000, 20000, NULL),
(1, 'dram', 'dram-0', NULL, 'intel-rapl:0:0', 0, 'powercap', 'measured', 1, 61, 262143328850, 1000000, 20000, NULL),
(2, 'gpu', 'gpu-0', 'GPU-6d5f1c9e-0000-4000-8000-000000000000', 'NVIDIA H100 80GB HBM3', 0, 'nvml', 'measured', 1, 1000, NULL, 20000000, 400000, 85520809984);
INSERT INTO device_sample (t_ns, device, target_utilization_percent, others_utilization_percent, target_memory_bytes, target_processes, others_processes) VALUES
(5000015000000, 2, 40, 40, 20000000000, 1, 1),
(5000115000000, 2, 40, 40, 20000000000, 1, 1),
(5000215000000, 2, 40, 40, 20000000000, 1, 1),
(5000315000000, 2, 40, 40, 20000000000, 1, 1),
(5000415000000, 2, 40, 40, 20000000000, 1, 1),
(5000515000000, 2, 40, 40, 20000000000, 1, 1),
(5000615000000, 2, 40, 40, 20000000000, 1, 1),
(5000715000000, 2, 40, 40, 20000000000, 1, 1),
(5000815000000, 2, 40, 40, 20000000000, 1, 1),
(5000915000000, 2, 40, 40, 20000000000, 1, 1),
(5001015000000, 2, 10, 10, 20000000000, 1, 1),
(5001115000000, 2, 40, 40, 20000000000, 1, 1),
(5001215000000, 2, 40, 40, 20000000000, 1, 1),
(5001240000000, 2, 0, 0, 20000000000, 1, 1);
INSERT INTO process (pid, start_ns, end_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4243, 5000014995000, 5001240000000, 4000, 'solver', 7149999999, 8000000000, 1, 1);
INSERT INTO span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) VALUES
(1, NULL, 4243, 4243, 'setup', 5000300000000, 5000800000000, 'nested', 'ended'),
(2, NULL, 4243, 4243, 'step', 5000800000000, 5001020000000, 'nested', 'ended'),
(3, 2, 4243, 4243, 'forward', 5000800000000, 5001000000000, 'nested', 'ended'),
(4, 2, 4243, 4243, 'MPI_Allreduce', 5001000000000, 5001020000000, 'nested', 'ended'),
(5, NULL, 4243, 4243, 'step', 5001020000000, 5001240000000, 'nested', 'ended'),
(6, 5, 4243, 4243, 'forward', 5001020000000, 5001220000000, 'nested', 'ended'),
(7, 5, 4243, 4243, 'MPI_Allreduce', 5001220000000, 5001240000000, 'nested', 'ended');
INSERT INTO event (t_ns, kind, text) VALUES
(5000015000000, 'sensors', 'package-0: read by pid 4242, rank 0 of this job'),
(5000015000000, 'sensors', 'dram-0: read by pid 4242, rank 0 of this job'),
(5000015000000, 'sensors', 'gpu-0: read by pid 4242, rank 0 of this job');
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000015000000, 5001240000000, 1793000000015000000, 0, 'made', 'node-02', 4243, '["./solver"]', 0, 1, 'rusage', 14, 0, 1225000000, 5924999999, 1, 1, 8000000000, 8000000000, 4096, 1225000, 612500, 5100000, 12);
