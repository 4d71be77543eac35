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
('n_gpus_system', '0'),
('user', 'ada'),
('step', 'step'),
('job_name', 'solver'),
('job_user', 'ada'),
('job_cluster', 'atlas'),
('job_launcher', 'environment'),
('rank', '1'),
('local_rank', '1'),
('world_size', '2'),
('local_size', '2'),
('n_nodes', '1'),
('node', 'node-01');
INSERT INTO sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, self_rss_bytes, main_cpu_ns, descendants_cpu_ns, system_memory_bytes, main_rss_bytes, descendants_rss_bytes, main_pss_bytes, descendants_pss_bytes, main_threads, descendants_threads, processes) VALUES
(5000026000000, 0, 0, 0, 0, 0, 0, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5000126000000, 50000, 1350000000, 8250000000, 0, 100000000, 500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000226000000, 100000, 2699999999, 16500000000, 0, 200000000, 1000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000326000000, 150000, 4050000000, 24750000000, 0, 300000000, 1500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000426000000, 200000, 5399999999, 33000000000, 0, 400000000, 2000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000526000000, 250000, 6750000000, 41250000000, 0, 500000000, 2500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000626000000, 300000, 8099999999, 49500000000, 0, 600000000, 3000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000726000000, 350000, 9450000000, 57750000000, 0, 700000000, 3500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000826000000, 400000, 10799999999, 66000000000, 0, 800000000, 4000000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5000926000000, 450000, 12149999999, 74250000000, 0, 900000000, 4500000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001026000000, 500000, 13299999999, 82700000000, 0, 1000000000, 4899999999, 100000000000, 8000000000, 0, 8000000000, 0, 8, 0, 1),
(5001126000000, 550000, 14649999999, 90950000000, 0, 1100000000, 5400000000, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001226000000, 600000, 15939999999, 99260000000, 0, 1200000000, 5869999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1),
(5001320000000, 650000, 16588999999, 107635000000, 0, 1294000000, 6269999999, 100000000000, 8000000000, 0, NULL, NULL, 8, 0, 1);
INSERT INTO process (pid, start_ns, end_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4243, 5000025995000, 5001320000000, 4000, 'solver', 7563999999, 8000000000, 1, 1);
INSERT INTO span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) VALUES
(1, NULL, 4243, 4243, 'setup', 5000300000000, 5000800000000, 'nested', 'ended'),
(2, NULL, 4243, 4243, 'step', 5000800000000, 5001020000000, 'nested', 'ended'),
(3, 2, 4243, 4243, 'forward', 5000800000000, 5001000000000, 'nested', 'ended'),
(4, 2, 4243, 4243, 'MPI_Allreduce', 5001000000000, 5001020000000, 'nested', 'ended'),
(5, NULL, 4243, 4243, 'step', 5001020000000, 5001240000000, 'nested', 'ended'),
(6, 5, 4243, 4243, 'forward', 5001020000000, 5001220000000, 'nested', 'ended'),
(7, 5, 4243, 4243, 'MPI_Allreduce', 5001220000000, 5001240000000, 'nested', 'ended');
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000026000000, 5001320000000, 1793000000026000000, 0, 'made', 'node-01', 4243, '["./solver"]', 0, 1, 'rusage', 14, 0, 1294000000, 6269999999, 1, 1, 8000000000, 8000000000, 4096, 1294000, 647000, 5100000, 12);
