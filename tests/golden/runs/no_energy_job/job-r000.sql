INSERT INTO run (key, value) VALUES
('complete', 'true'),
('host', 'node-01'),
('id', '7e57ab1e-0000-4000-8000-000000000000'),
('interval_ns', '100000000'),
('command', '["./solver", "--steps", "2"]'),
('anchor_mono_ns', '5000013000000'),
('anchor_wall_ns', '1793000000013000000'),
('boot_id', 'b0070000-0000-4000-8000-000000000000'),
('machine', 'b0070000-0000-4000-8000-000000000000'),
('memory_total_bytes', '540000000000'),
('n_cores', '96'),
('expected_cores', '96'),
('n_gpus_system', '0'),
('user', 'ada'),
('step', 'step'),
('job_name', 'solver'),
('job_user', 'ada'),
('job_cluster', 'atlas'),
('job_launcher', 'environment'),
('rank', '0'),
('local_rank', '0'),
('world_size', '2'),
('local_size', '2'),
('n_nodes', '1'),
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
(5000913000000, 450000, 12072000000, 74328000000, 0, 900000000, 4499999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001013000000, 500000, 13291999999, 82707999999, 0, 999999999, 4934999999, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5001113000000, 550000, 14571999999, 91028000000, 0, 1100000000, 5399999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001213000000, 600000, 15921999999, 99278000000, 0, 1200000000, 5899999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001240000000, 650000, 16086499999, 101705500000, 0, 1227000000, 5934999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1);
INSERT INTO process (pid, start_ns, end_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4242, 5000012995000, 5001240000000, 4000, 'solver', 7161999999, 8000000000, 1, 1);
INSERT INTO span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) VALUES
(1, NULL, 4242, 4242, 'setup', 5000300000000, 5000800000000, 'nested', 'ended'),
(2, NULL, 4242, 4242, 'step', 5000800000000, 5001020000000, 'nested', 'ended'),
(3, 2, 4242, 4242, 'forward', 5000800000000, 5001000000000, 'nested', 'ended'),
(4, 2, 4242, 4242, 'MPI_Allreduce', 5001000000000, 5001020000000, 'nested', 'ended'),
(5, NULL, 4242, 4242, 'step', 5001020000000, 5001240000000, 'nested', 'ended'),
(6, 5, 4242, 4242, 'forward', 5001020000000, 5001220000000, 'nested', 'ended'),
(7, 5, 4242, 4242, 'MPI_Allreduce', 5001220000000, 5001240000000, 'nested', 'ended');
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000013000000, 5001240000000, 1793000000013000000, 0, 'made', 'node-01', 4242, '["./solver"]', 0, 1, 'rusage', 14, 0, 1227000000, 5934999999, 1, 1, 8000000000, 8000000000, 4096, 1227000, 613500, 5100000, 12);
