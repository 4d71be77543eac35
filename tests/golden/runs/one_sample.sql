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
('n_gpus_system', '1'),
('label', 'baseline'),
('step', 'step'),
('meta.dataset', 'imagenet-1k'),
('meta.batch_size', '256'),
('carbon_intensity_g_per_kwh', '380'),
('boot_id', 'b0070000-0000-4000-8000-000000000000'),
('machine', 'b0070000-0000-4000-8000-000000000000'),
('user', 'ada'),
('attached', 'false'),
('gpu_memory_total_bytes', '85520809984'),
('wattle_version', '0.1.0'),
('id', '7e57ab1e-1000-4000-8000-00000000000f');
INSERT INTO sample (t_ns, self_cpu_ns, system_cpu_busy_ns, system_cpu_idle_ns, self_rss_bytes, main_cpu_ns, descendants_cpu_ns, system_memory_bytes, main_rss_bytes, descendants_rss_bytes, main_pss_bytes, descendants_pss_bytes, main_threads, descendants_threads, processes) VALUES
(5000000000000, 0, 0, 0, 5100000, 0, 0, 59000000000, 16000000000, 8800000000, 15700000000, 4000000000, 34, 8, 9);
INSERT INTO device (id, kind, name, uuid, device, idx, source, provenance, has_energy, resolution_uj, update_period_ns, update_jitter_ns, memory_total_bytes) VALUES
(0, 'package', 'package-0', NULL, 'Intel(R) Xeon(R) Platinum 8468', 0, 'powercap', 'measured', 1, 61, 1000000, 20000, NULL),
(1, 'dram', 'dram-0', NULL, 'intel-rapl:0:0', 0, 'powercap', 'measured', 1, 61, 1000000, 20000, NULL),
(2, 'gpu', 'gpu-0', 'GPU-6d5f1c9e-0000-4000-8000-000000000000', 'NVIDIA H100 80GB HBM3', 0, 'nvml', 'measured', 1, 1000, 20000000, 400000, 85520809984);
INSERT INTO device_sample (t_ns, device, energy_uj, temperature_c) VALUES
(5000000000000, 0, 0, 34);
INSERT INTO device_sample (t_ns, device, energy_uj) VALUES
(5000000000000, 1, 0);
INSERT INTO device_sample (t_ns, device, energy_uj, power_mw, power_cap_mw, utilization_percent, target_utilization_percent, others_utilization_percent, memory_used_bytes, main_memory_bytes, target_memory_bytes, others_memory_bytes, target_processes, others_processes, temperature_c, sm_clock_mhz, memory_clock_mhz, throttle_reasons_bits) VALUES
(5000000000000, 2, 0, 248640, 700000, 25, 24, 0, 3800000000, 3200000000, 3200000000, 600000000, 1, 1, 34, 1980, 2619, 0);
INSERT INTO process (pid, start_ns, end_ns, ppid, command, cpu_ns, max_rss_bytes, is_main, sampled) VALUES
(4242, 4999999995000, 5000000000000, 4000, 'python3 train.py', 0, 16000000000, 1, 1),
(4243, 4999999996000, 5000000000000, 4242, 'pt_data_worker', 0, 1500000000, 0, 1),
(4244, 4999999997000, 5000000000000, 4242, 'pt_data_worker', 0, 1500000000, 0, 1),
(4245, 4999999998000, 5000000000000, 4242, 'pt_data_worker', 0, 1500000000, 0, 1),
(4246, 4999999999000, 5000000000000, 4242, 'pt_data_worker', 0, 1500000000, 0, 1);
INSERT INTO segment (id, start_ns, end_ns, wall_start_ns, boot_start_ns, shift_ns, boot_id, host, pid, command, exit_code, complete, cpu_method, samples, lost_samples, main_cpu_ns, descendants_cpu_ns, processes_seen, processes_sampled, peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, self_cpu_ns, self_max_rss_bytes, self_wakeups) VALUES
(1, 5000000000000, 5000000000000, 1793000000000000000, 5000700000000, 0, 'b0070000-0000-4000-8000-000000000000', 'node-17', 4242, '["python3", "train.py", "--epochs", "6", "--batch-size", "256"]', 0, 1, 'rusage', 1, 0, 0, 0, 5, 5, 24000000000, 16000000000, 0, 0, 0, 5100000, 0);
