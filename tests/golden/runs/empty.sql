INSERT INTO run (key, value) VALUES
('ram_unit', 'gigabytes'),
('gpu_ram_unit', 'gigabytes'),
('time_unit', 'hours'),
('attribution', 'busy'),
('schema', '1'),
('complete', 'true'),
('host', 'node-17'),
('interval_ns', '100000000'),
('command', '["python3", "train.py", "--epochs", "6", "--batch-size", "256"]'),
('anchor_mono_ns', '5000000000000'),
('anchor_wall_ns', '1793000000000000000'),
('memory_total_bytes', '540000000000'),
('n_cores', '96'),
('expected_cores', '96'),
('n_gpus_system', '0'),
('label', 'baseline'),
('step', 'step'),
('meta.dataset', 'imagenet-1k'),
('meta.batch_size', '256'),
('carbon_intensity_g_per_kwh', '380'),
('boot_id', 'b0070000-0000-4000-8000-000000000000'),
('machine', 'b0070000-0000-4000-8000-000000000000'),
('user', 'ada'),
('attached', 'false'),
('gpu_memory_total_bytes', '0'),
('wattle_version', '0.1.0'),
('id', '7e57ab1e-1000-4000-8000-000000000010');
INSERT INTO device (id, kind, name, device, idx, source, provenance, has_energy, resolution_uj, update_period_ns, update_jitter_ns) VALUES
(0, 'package', 'package-0', 'Intel(R) Xeon(R) Platinum 8468', 0, 'powercap', 'measured', 1, 61, 1000000, 20000),
(1, 'dram', 'dram-0', 'intel-rapl:0:0', 0, 'powercap', 'measured', 1, 61, 1000000, 20000);
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, boot_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000000000000, 5000000400000, 1793000000000000000, 5000700000000, 0, 'b0070000-0000-4000-8000-000000000000', 'node-17', 4242, '["python3", "train.py", "--epochs", "6", "--batch-size", "256"]', 0, 1, 'rusage', 0, 0, 360000, 1400000, 5, 5, 24000000000, 16000000000, 480000, 20000, 720, 5100000, 0);
