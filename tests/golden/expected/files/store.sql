CREATE TABLE IF NOT EXISTS recording ("run_id" uuid NOT NULL, "sent_by" name NOT NULL, "user_name" text, "host" text, "machine" text, "node" text, "job_id" text, "job_step" text, "job_name" text, "job_cluster" text, "job_launcher" text, "rank" bigint, "local_rank" bigint, "world_size" bigint, "local_size" bigint, "n_nodes" bigint, "restart" bigint, "label" text, "command" text, "wattle_version" text, "interval_ns" bigint, "started" timestamptz, "ended" timestamptz, "duration_s" double precision, "segments" bigint, "samples" bigint, "spans" bigint, "exit_code" bigint, "complete" boolean, "energy_j" double precision, "error_j" double precision, "provenance" text, "clock_offset_s" double precision, PRIMARY KEY (run_id)) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS sent ("run_id" uuid NOT NULL, "table_name" text NOT NULL, "mark" bigint, "n" bigint, "ids" int8multirange, "changed" timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run_id, table_name)) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS run ("run_id" uuid NOT NULL, "key" text NOT NULL, "value" text, PRIMARY KEY (run_id, key));
CREATE TABLE IF NOT EXISTS segment ("run_id" uuid NOT NULL, "id" bigint NOT NULL, "start_ns" bigint NOT NULL, "end_ns" bigint, "wall_start_ns" bigint, "boot_start_ns" bigint, "shift_ns" bigint NOT NULL, "boot_id" text, "host" text, "pid" bigint, "command" text, "exit_code" bigint, "complete" bigint NOT NULL, "cpu_method" text, "samples" bigint, "lost_samples" bigint, "main_cpu_ns" bigint, "descendants_cpu_ns" bigint, "referee_cpu_ns" bigint, "processes_seen" bigint, "processes_sampled" bigint, "peak_rss_bytes" bigint, "main_peak_rss_bytes" bigint, "read_bytes" bigint, "written_bytes" bigint, "major_faults" bigint, "minor_faults" bigint, "voluntary_switches" bigint, "involuntary_switches" bigint, "self_cpu_ns" bigint, "self_max_rss_bytes" bigint, "self_wakeups" bigint, "lost_spans" bigint, "unwound_spans" bigint, "spool_bytes" bigint, PRIMARY KEY (run_id, id));
CREATE TABLE IF NOT EXISTS device ("run_id" uuid NOT NULL, "id" bigint NOT NULL, "kind" text NOT NULL, "name" text NOT NULL, "uuid" text, "device" text, "inside" text, "idx" bigint, "source" text NOT NULL, "provenance" text NOT NULL, "has_energy" bigint NOT NULL, "resolution_uj" bigint, "energy_range_uj" bigint, "update_period_ns" bigint, "update_jitter_ns" bigint, "idle_w" double precision, "idle_error_w" double precision, "idle_temperature_c" double precision, "idle_date" text, "gain" double precision, "gain_error" double precision, "gain_source" text, "relative_error" double precision, "memory_total_bytes" bigint, PRIMARY KEY (run_id, id));
CREATE TABLE IF NOT EXISTS process ("run_id" uuid NOT NULL, "pid" bigint NOT NULL, "start_ns" bigint NOT NULL, "end_ns" bigint, "ppid" bigint, "command" text, "cpu_ns" bigint, "max_rss_bytes" bigint, "is_main" bigint NOT NULL, "sampled" bigint NOT NULL, "time" timestamptz, PRIMARY KEY (run_id, pid, start_ns));
CREATE TABLE IF NOT EXISTS block ("run_id" uuid NOT NULL, "name" text NOT NULL, "timepoints" bigint, "calls" bigint, "non_empty_calls" bigint, "unwound" bigint, "cut" bigint, "time_total_s" double precision, "time_min_s" double precision, "time_max_s" double precision, "time_mean_s" double precision, "time_std_s" double precision, "time_p95_s" double precision, "active_s" double precision, "self_time_s" double precision, "program_cpu_s" double precision, "cpu_s" double precision, "energy_j" double precision, "error_j" double precision, "self_j" double precision, "self_error_j" double precision, PRIMARY KEY (run_id, name));
CREATE TABLE IF NOT EXISTS metric ("run_id" uuid, "table_name" text NOT NULL, "name" text NOT NULL, "unit" text, "kind" text, "meaning" text, "source" text);
CREATE TABLE IF NOT EXISTS sample ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "t_ns" bigint NOT NULL, "level" smallint NOT NULL, "self_cpu_ns" bigint, "system_cpu_busy_ns" bigint, "system_cpu_idle_ns" bigint, "self_rss_bytes" bigint, "main_cpu_ns" bigint, "descendants_cpu_ns" bigint, "referee_cpu_ns" bigint, "system_memory_bytes" bigint, "main_rss_bytes" bigint, "descendants_rss_bytes" bigint, "main_pss_bytes" bigint, "descendants_pss_bytes" bigint, "main_uss_bytes" bigint, "descendants_uss_bytes" bigint, "main_private_bytes" bigint, "descendants_private_bytes" bigint, "main_shared_bytes" bigint, "descendants_shared_bytes" bigint, "combined_shared_bytes" bigint, "main_ram_bytes" bigint, "descendants_ram_bytes" bigint, "combined_ram_bytes" bigint, "main_threads" integer, "descendants_threads" integer, "processes" integer) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS device_sample ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "t_ns" bigint NOT NULL, "device" integer NOT NULL, "level" smallint NOT NULL, "energy_uj" bigint, "energy_time_ns" bigint, "energy_raw_uj" bigint, "memory_used_bytes" bigint, "main_memory_bytes" bigint, "target_memory_bytes" bigint, "others_memory_bytes" bigint, "throttle_reasons_bits" bigint, "power_mw" integer, "power_average_mw" integer, "power_cap_mw" integer, "utilization_percent" integer, "memory_utilization_percent" integer, "target_utilization_percent" integer, "others_utilization_percent" integer, "target_processes" integer, "others_processes" integer, "target_mig_share_ppm" integer, "others_mig_share_ppm" integer, "temperature_c" integer, "sm_clock_mhz" integer, "memory_clock_mhz" integer, "memory_temperature_c" integer) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS process_sample ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "t_ns" bigint NOT NULL, "start_ns" bigint NOT NULL, "pid" integer NOT NULL, "cpu_ns" bigint, "rss_bytes" bigint, "threads" integer) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS span ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "id" bigint NOT NULL, "parent" bigint, "begin_ns" bigint NOT NULL, "end_ns" bigint, "cpu_ns" bigint, "pid" integer, "tid" integer, "name" text NOT NULL, "category" text, "kind" text, "close" text) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS user_metric ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "t_ns" bigint NOT NULL, "value" double precision, "span" bigint, "pid" integer, "tid" integer, "name" text NOT NULL) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS event ("run_id" uuid NOT NULL, "time" timestamptz NOT NULL, "t_ns" bigint NOT NULL, "rank" bigint, "count" bigint, "duration_ns" bigint, "old_value" bigint, "new_value" bigint, "slept_ns" bigint, "pid" integer, "kind" text NOT NULL, "reason" text, "device" text, "sensor" text, "detail" text, "text" text) PARTITION BY RANGE ("time");
CREATE TABLE IF NOT EXISTS wattle_schema ("version" integer NOT NULL, "compatible" integer NOT NULL, "changed" timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS wattle_big ("name" text NOT NULL PRIMARY KEY, "has_level" boolean NOT NULL, "indexes" text NOT NULL);
DO $$ DECLARE c record; BEGIN FOR c IN SELECT v.* FROM (VALUES ('recording', 'run_id', 'uuid'), ('recording', 'sent_by', 'name NOT NULL'), ('recording', 'user_name', 'text'), ('recording', 'host', 'text'), ('recording', 'machine', 'text'), ('recording', 'node', 'text'), ('recording', 'job_id', 'text'), ('recording', 'job_step', 'text'), ('recording', 'job_name', 'text'), ('recording', 'job_cluster', 'text'), ('recording', 'job_launcher', 'text'), ('recording', 'rank', 'bigint'), ('recording', 'local_rank', 'bigint'), ('recording', 'world_size', 'bigint'), ('recording', 'local_size', 'bigint'), ('recording', 'n_nodes', 'bigint'), ('recording', 'restart', 'bigint'), ('recording', 'label', 'text'), ('recording', 'command', 'text'), ('recording', 'wattle_version', 'text'), ('recording', 'interval_ns', 'bigint'), ('recording', 'started', 'timestamptz'), ('recording', 'ended', 'timestamptz'), ('recording', 'duration_s', 'double precision'), ('recording', 'segments', 'bigint'), ('recording', 'samples', 'bigint'), ('recording', 'spans', 'bigint'), ('recording', 'exit_code', 'bigint'), ('recording', 'complete', 'boolean'), ('recording', 'energy_j', 'double precision'), ('recording', 'error_j', 'double precision'), ('recording', 'provenance', 'text'), ('recording', 'clock_offset_s', 'double precision'), ('sent', 'run_id', 'uuid'), ('sent', 'table_name', 'text NOT NULL'), ('sent', 'mark', 'bigint'), ('sent', 'n', 'bigint'), ('sent', 'ids', 'int8multirange'), ('sent', 'changed', 'timestamptz NOT NULL DEFAULT now()'), ('run', 'run_id', 'uuid'), ('run', 'key', 'text'), ('run', 'value', 'text'), ('segment', 'run_id', 'uuid'), ('segment', 'id', 'bigint'), ('segment', 'start_ns', 'bigint'), ('segment', 'end_ns', 'bigint'), ('segment', 'wall_start_ns', 'bigint'), ('segment', 'boot_start_ns', 'bigint'), ('segment', 'shift_ns', 'bigint'), ('segment', 'boot_id', 'text'), ('segment', 'host', 'text'), ('segment', 'pid', 'bigint'), ('segment', 'command', 'text'), ('segment', 'exit_code', 'bigint'), ('segment', 'complete', 'bigint'), ('segment', 'cpu_method', 'text'), ('segment', 'samples', 'bigint'), ('segment', 'lost_samples', 'bigint'), ('segment', 'main_cpu_ns', 'bigint'), ('segment', 'descendants_cpu_ns', 'bigint'), ('segment', 'referee_cpu_ns', 'bigint'), ('segment', 'processes_seen', 'bigint'), ('segment', 'processes_sampled', 'bigint'), ('segment', 'peak_rss_bytes', 'bigint'), ('segment', 'main_peak_rss_bytes', 'bigint'), ('segment', 'read_bytes', 'bigint'), ('segment', 'written_bytes', 'bigint'), ('segment', 'major_faults', 'bigint'), ('segment', 'minor_faults', 'bigint'), ('segment', 'voluntary_switches', 'bigint'), ('segment', 'involuntary_switches', 'bigint'), ('segment', 'self_cpu_ns', 'bigint'), ('segment', 'self_max_rss_bytes', 'bigint'), ('segment', 'self_wakeups', 'bigint'), ('segment', 'lost_spans', 'bigint'), ('segment', 'unwound_spans', 'bigint'), ('segment', 'spool_bytes', 'bigint'), ('device', 'run_id', 'uuid'), ('device', 'id', 'bigint'), ('device', 'kind', 'text'), ('device', 'name', 'text'), ('device', 'uuid', 'text'), ('device', 'device', 'text'), ('device', 'inside', 'text'), ('device', 'idx', 'bigint'), ('device', 'source', 'text'), ('device', 'provenance', 'text'), ('device', 'has_energy', 'bigint'), ('device', 'resolution_uj', 'bigint'), ('device', 'energy_range_uj', 'bigint'), ('device', 'update_period_ns', 'bigint'), ('device', 'update_jitter_ns', 'bigint'), ('device', 'idle_w', 'double precision'), ('device', 'idle_error_w', 'double precision'), ('device', 'idle_temperature_c', 'double precision'), ('device', 'idle_date', 'text'), ('device', 'gain', 'double precision'), ('device', 'gain_error', 'double precision'), ('device', 'gain_source', 'text'), ('device', 'relative_error', 'double precision'), ('device', 'memory_total_bytes', 'bigint'), ('process', 'run_id', 'uuid'), ('process', 'pid', 'bigint'), ('process', 'start_ns', 'bigint'), ('process', 'end_ns', 'bigint'), ('process', 'ppid', 'bigint'), ('process', 'command', 'text'), ('process', 'cpu_ns', 'bigint'), ('process', 'max_rss_bytes', 'bigint'), ('process', 'is_main', 'bigint'), ('process', 'sampled', 'bigint'), ('process', 'time', 'timestamptz'), ('block', 'run_id', 'uuid'), ('block', 'name', 'text NOT NULL'), ('block', 'timepoints', 'bigint'), ('block', 'calls', 'bigint'), ('block', 'non_empty_calls', 'bigint'), ('block', 'unwound', 'bigint'), ('block', 'cut', 'bigint'), ('block', 'time_total_s', 'double precision'), ('block', 'time_min_s', 'double precision'), ('block', 'time_max_s', 'double precision'), ('block', 'time_mean_s', 'double precision'), ('block', 'time_std_s', 'double precision'), ('block', 'time_p95_s', 'double precision'), ('block', 'active_s', 'double precision'), ('block', 'self_time_s', 'double precision'), ('block', 'program_cpu_s', 'double precision'), ('block', 'cpu_s', 'double precision'), ('block', 'energy_j', 'double precision'), ('block', 'error_j', 'double precision'), ('block', 'self_j', 'double precision'), ('block', 'self_error_j', 'double precision'), ('metric', 'run_id', 'uuid'), ('metric', 'table_name', 'text'), ('metric', 'name', 'text'), ('metric', 'unit', 'text'), ('metric', 'kind', 'text'), ('metric', 'meaning', 'text'), ('metric', 'source', 'text'), ('sample', 'run_id', 'uuid'), ('sample', 'time', 'timestamptz'), ('sample', 't_ns', 'bigint'), ('sample', 'level', 'smallint'), ('sample', 'self_cpu_ns', 'bigint'), ('sample', 'system_cpu_busy_ns', 'bigint'), ('sample', 'system_cpu_idle_ns', 'bigint'), ('sample', 'self_rss_bytes', 'bigint'), ('sample', 'main_cpu_ns', 'bigint'), ('sample', 'descendants_cpu_ns', 'bigint'), ('sample', 'referee_cpu_ns', 'bigint'), ('sample', 'system_memory_bytes', 'bigint'), ('sample', 'main_rss_bytes', 'bigint'), ('sample', 'descendants_rss_bytes', 'bigint'), ('sample', 'main_pss_bytes', 'bigint'), ('sample', 'descendants_pss_bytes', 'bigint'), ('sample', 'main_uss_bytes', 'bigint'), ('sample', 'descendants_uss_bytes', 'bigint'), ('sample', 'main_private_bytes', 'bigint'), ('sample', 'descendants_private_bytes', 'bigint'), ('sample', 'main_shared_bytes', 'bigint'), ('sample', 'descendants_shared_bytes', 'bigint'), ('sample', 'combined_shared_bytes', 'bigint'), ('sample', 'main_ram_bytes', 'bigint'), ('sample', 'descendants_ram_bytes', 'bigint'), ('sample', 'combined_ram_bytes', 'bigint'), ('sample', 'main_threads', 'integer'), ('sample', 'descendants_threads', 'integer'), ('sample', 'processes', 'integer'), ('device_sample', 'run_id', 'uuid'), ('device_sample', 'time', 'timestamptz'), ('device_sample', 't_ns', 'bigint'), ('device_sample', 'device', 'integer'), ('device_sample', 'level', 'smallint'), ('device_sample', 'energy_uj', 'bigint'), ('device_sample', 'energy_time_ns', 'bigint'), ('device_sample', 'energy_raw_uj', 'bigint'), ('device_sample', 'memory_used_bytes', 'bigint'), ('device_sample', 'main_memory_bytes', 'bigint'), ('device_sample', 'target_memory_bytes', 'bigint'), ('device_sample', 'others_memory_bytes', 'bigint'), ('device_sample', 'throttle_reasons_bits', 'bigint'), ('device_sample', 'power_mw', 'integer'), ('device_sample', 'power_average_mw', 'integer'), ('device_sample', 'power_cap_mw', 'integer'), ('device_sample', 'utilization_percent', 'integer'), ('device_sample', 'memory_utilization_percent', 'integer'), ('device_sample', 'target_utilization_percent', 'integer'), ('device_sample', 'others_utilization_percent', 'integer'), ('device_sample', 'target_processes', 'integer'), ('device_sample', 'others_processes', 'integer'), ('device_sample', 'target_mig_share_ppm', 'integer'), ('device_sample', 'others_mig_share_ppm', 'integer'), ('device_sample', 'temperature_c', 'integer'), ('device_sample', 'sm_clock_mhz', 'integer'), ('device_sample', 'memory_clock_mhz', 'integer'), ('device_sample', 'memory_temperature_c', 'integer'), ('process_sample', 'run_id', 'uuid'), ('process_sample', 'time', 'timestamptz'), ('process_sample', 't_ns', 'bigint'), ('process_sample', 'start_ns', 'bigint'), ('process_sample', 'pid', 'integer'), ('process_sample', 'cpu_ns', 'bigint'), ('process_sample', 'rss_bytes', 'bigint'), ('process_sample', 'threads', 'integer'), ('span', 'run_id', 'uuid'), ('span', 'time', 'timestamptz'), ('span', 'id', 'bigint'), ('span', 'parent', 'bigint'), ('span', 'begin_ns', 'bigint'), ('span', 'end_ns', 'bigint'), ('span', 'cpu_ns', 'bigint'), ('span', 'pid', 'integer'), ('span', 'tid', 'integer'), ('span', 'name', 'text'), ('span', 'category', 'text'), ('span', 'kind', 'text'), ('span', 'close', 'text'), ('user_metric', 'run_id', 'uuid'), ('user_metric', 'time', 'timestamptz'), ('user_metric', 't_ns', 'bigint'), ('user_metric', 'value', 'double precision'), ('user_metric', 'span', 'bigint'), ('user_metric', 'pid', 'integer'), ('user_metric', 'tid', 'integer'), ('user_metric', 'name', 'text'), ('event', 'run_id', 'uuid'), ('event', 'time', 'timestamptz'), ('event', 't_ns', 'bigint'), ('event', 'rank', 'bigint'), ('event', 'count', 'bigint'), ('event', 'duration_ns', 'bigint'), ('event', 'old_value', 'bigint'), ('event', 'new_value', 'bigint'), ('event', 'slept_ns', 'bigint'), ('event', 'pid', 'integer'), ('event', 'kind', 'text'), ('event', 'reason', 'text'), ('event', 'device', 'text'), ('event', 'sensor', 'text'), ('event', 'detail', 'text'), ('event', 'text', 'text'), ('wattle_schema', 'version', 'integer NOT NULL'), ('wattle_schema', 'compatible', 'integer NOT NULL'), ('wattle_schema', 'changed', 'timestamptz NOT NULL DEFAULT now()'), ('wattle_big', 'name', 'text NOT NULL PRIMARY KEY'), ('wattle_big', 'has_level', 'boolean NOT NULL'), ('wattle_big', 'indexes', 'text NOT NULL')) AS v (owner, name, type) WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass(v.owner) AND a.attname = v.name AND NOT a.attisdropped) LOOP
EXECUTE format('ALTER TABLE %I ADD COLUMN %I %s', c.owner, c.name, c.type); END LOOP; END $$;
CREATE INDEX IF NOT EXISTS recording_job ON recording (job_id);
CREATE INDEX IF NOT EXISTS recording_started ON recording (started);
CREATE UNIQUE INDEX IF NOT EXISTS metric_of_run ON metric (run_id, table_name, name);
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('sample', true, 'run_id, t_ns') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('device_sample', true, 'run_id, t_ns') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('process_sample', false, 'run_id, t_ns') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('span', false, 'run_id, id') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('user_metric', false, 'run_id, t_ns') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
INSERT INTO wattle_big (name, has_level, indexes) VALUES ('event', false, 'run_id, t_ns') ON CONFLICT (name) DO UPDATE SET has_level = excluded.has_level, indexes = excluded.indexes;
DELETE FROM metric WHERE run_id IS NULL;
COMMENT ON COLUMN recording."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN recording."sent_by" IS 'database role that started the run; only this role can add rows';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'sent_by', nullif('', ''), 'database role that started the run; only this role can add rows');
COMMENT ON COLUMN recording."user_name" IS 'user name on the run''s host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'user_name', nullif('', ''), 'user name on the run''s host');
COMMENT ON COLUMN recording."host" IS 'name of the machine';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'host', nullif('', ''), 'name of the machine');
COMMENT ON COLUMN recording."machine" IS 'identity of the machine whose sensors were read: its boot, and the root of the sensor files';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'machine', nullif('', ''), 'identity of the machine whose sensors were read: its boot, and the root of the sensor files');
COMMENT ON COLUMN recording."node" IS 'the scheduler''s name of the node';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'node', nullif('', ''), 'the scheduler''s name of the node');
COMMENT ON COLUMN recording."job_id" IS 'the job; null outside of jobs';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'job_id', nullif('', ''), 'the job; null outside of jobs');
COMMENT ON COLUMN recording."job_step" IS 'the step of a Slurm job';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'job_step', nullif('', ''), 'the step of a Slurm job');
COMMENT ON COLUMN recording."job_name" IS 'the job''s name';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'job_name', nullif('', ''), 'the job''s name');
COMMENT ON COLUMN recording."job_cluster" IS 'the cluster''s name';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'job_cluster', nullif('', ''), 'the cluster''s name');
COMMENT ON COLUMN recording."job_launcher" IS 'launcher that set the rank: slurm, openmpi, torchrun ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'job_launcher', nullif('', ''), 'launcher that set the rank: slurm, openmpi, torchrun ...');
COMMENT ON COLUMN recording."rank" IS 'rank in the job, from 0';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'rank', nullif('', ''), 'rank in the job, from 0');
COMMENT ON COLUMN recording."local_rank" IS 'rank on the node, from 0';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'local_rank', nullif('', ''), 'rank on the node, from 0');
COMMENT ON COLUMN recording."world_size" IS 'ranks of the job';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'world_size', nullif('', ''), 'ranks of the job');
COMMENT ON COLUMN recording."local_size" IS 'ranks on the node';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'local_size', nullif('', ''), 'ranks on the node');
COMMENT ON COLUMN recording."n_nodes" IS 'nodes of the job';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'n_nodes', nullif('', ''), 'nodes of the job');
COMMENT ON COLUMN recording."restart" IS 'how often the job or its workers were started again';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'restart', nullif('', ''), 'how often the job or its workers were started again');
COMMENT ON COLUMN recording."label" IS '--label of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'label', nullif('', ''), '--label of the run');
COMMENT ON COLUMN recording."command" IS 'the command, a JSON array';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'command', nullif('', ''), 'the command, a JSON array');
COMMENT ON COLUMN recording."wattle_version" IS 'version of the recorder';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'wattle_version', nullif('', ''), 'version of the recorder');
COMMENT ON COLUMN recording."interval_ns" IS 'sampling period';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'interval_ns', nullif('ns', ''), 'sampling period');
COMMENT ON COLUMN recording."started" IS 'when the target started, by its host''s clock';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'started', nullif('', ''), 'when the target started, by its host''s clock');
COMMENT ON COLUMN recording."ended" IS 'when it ended, by its host''s clock; null: still running, or its end was not recorded';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'ended', nullif('', ''), 'when it ended, by its host''s clock; null: still running, or its end was not recorded');
COMMENT ON COLUMN recording."duration_s" IS 'sum over its segments';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'duration_s', nullif('s', ''), 'sum over its segments');
COMMENT ON COLUMN recording."segments" IS 'recordings in it';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'segments', nullif('', ''), 'recordings in it');
COMMENT ON COLUMN recording."samples" IS 'samples taken';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'samples', nullif('', ''), 'samples taken');
COMMENT ON COLUMN recording."spans" IS 'spans in it';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'spans', nullif('', ''), 'spans in it');
COMMENT ON COLUMN recording."exit_code" IS 'exit status of the last segment, as returned by wattle';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'exit_code', nullif('', ''), 'exit status of the last segment, as returned by wattle');
COMMENT ON COLUMN recording."complete" IS 'false: still running, or its recorder died';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'complete', nullif('', ''), 'false: still running, or its recorder died');
COMMENT ON COLUMN recording."energy_j" IS 'total of its report; null where another rank read the sensors';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'energy_j', nullif('j', ''), 'total of its report; null where another rank read the sensors');
COMMENT ON COLUMN recording."error_j" IS 'error of energy_j';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'error_j', nullif('j', ''), 'error of energy_j');
COMMENT ON COLUMN recording."provenance" IS 'provenance of energy_j: measured, derived or estimated';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'provenance', nullif('', ''), 'provenance of energy_j: measured, derived or estimated');
COMMENT ON COLUMN recording."clock_offset_s" IS 'the server''s clock minus the host''s at the last upload, network delay included';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'recording', 'clock_offset_s', nullif('s', ''), 'the server''s clock minus the host''s at the last upload, network delay included');
COMMENT ON COLUMN sent."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN sent."table_name" IS 'table whose rows are sent';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'table_name', nullif('', ''), 'table whose rows are sent');
COMMENT ON COLUMN sent."mark" IS 'position reached: time or number of the last row; earlier rows are not sent again';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'mark', nullif('', ''), 'position reached: time or number of the last row; earlier rows are not sent again');
COMMENT ON COLUMN sent."n" IS 'rows of the table that were sent';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'n', nullif('', ''), 'rows of the table that were sent');
COMMENT ON COLUMN sent."ids" IS 'for spans: the numbers of the spans that were sent';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'ids', nullif('', ''), 'for spans: the numbers of the spans that were sent');
COMMENT ON COLUMN sent."changed" IS 'when rows last arrived, by the server''s clock';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sent', 'changed', nullif('', ''), 'when rows last arrived, by the server''s clock');
COMMENT ON COLUMN run."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'run', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN run."key" IS 'name of a property of the run; the names are in docs/run-file.md';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'run', 'key', nullif('', ''), 'name of a property of the run; the names are in docs/run-file.md');
COMMENT ON COLUMN run."value" IS 'value of the property, as text';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'run', 'value', nullif('', ''), 'value of the property, as text');
COMMENT ON COLUMN segment."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN segment."id" IS 'number of the recording in this file, from 1';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'id', nullif('', ''), 'number of the recording in this file, from 1');
COMMENT ON COLUMN segment."start_ns" IS 'when the target started';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'start_ns', nullif('ns', ''), 'when the target started');
COMMENT ON COLUMN segment."end_ns" IS 'when it ended; null: still running, or the recorder died';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'end_ns', nullif('ns', ''), 'when it ended; null: still running, or the recorder died');
COMMENT ON COLUMN segment."wall_start_ns" IS 'start_ns as Unix time';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'wall_start_ns', nullif('ns', ''), 'start_ns as Unix time');
COMMENT ON COLUMN segment."boot_start_ns" IS 'start_ns on CLOCK_BOOTTIME; null: unknown, or a clock other than the file''s';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'boot_start_ns', nullif('ns', ''), 'start_ns on CLOCK_BOOTTIME; null: unknown, or a clock other than the file''s');
COMMENT ON COLUMN segment."shift_ns" IS 'offset added to this recording''s clock so that times keep increasing';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'shift_ns', nullif('ns', ''), 'offset added to this recording''s clock so that times keep increasing');
COMMENT ON COLUMN segment."boot_id" IS 'boot ID of the machine';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'boot_id', nullif('', ''), 'boot ID of the machine');
COMMENT ON COLUMN segment."host" IS 'name of the machine';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'host', nullif('', ''), 'name of the machine');
COMMENT ON COLUMN segment."pid" IS 'process id of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'pid', nullif('', ''), 'process id of the root process');
COMMENT ON COLUMN segment."command" IS 'the command, a JSON array';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'command', nullif('', ''), 'the command, a JSON array');
COMMENT ON COLUMN segment."exit_code" IS 'exit status returned by wattle: 128+N if signal N ended the command';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'exit_code', nullif('', ''), 'exit status returned by wattle: 128+N if signal N ended the command');
COMMENT ON COLUMN segment."complete" IS '0: the recorder is still running or has died';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'complete', nullif('', ''), '0: the recorder is still running or has died');
COMMENT ON COLUMN segment."cpu_method" IS 'method by which the target''s CPU time was measured';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'cpu_method', nullif('', ''), 'method by which the target''s CPU time was measured');
COMMENT ON COLUMN segment."samples" IS 'samples taken';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'samples', nullif('', ''), 'samples taken');
COMMENT ON COLUMN segment."lost_samples" IS 'samples missed or not stored';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'lost_samples', nullif('', ''), 'samples missed or not stored');
COMMENT ON COLUMN segment."main_cpu_ns" IS 'CPU time of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'main_cpu_ns', nullif('ns', ''), 'CPU time of the root process');
COMMENT ON COLUMN segment."descendants_cpu_ns" IS 'CPU time of all its descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'descendants_cpu_ns', nullif('ns', ''), 'CPU time of all its descendants');
COMMENT ON COLUMN segment."referee_cpu_ns" IS 'CPU time of the target by a second method';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'referee_cpu_ns', nullif('ns', ''), 'CPU time of the target by a second method');
COMMENT ON COLUMN segment."processes_seen" IS 'processes of the target';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'processes_seen', nullif('', ''), 'processes of the target');
COMMENT ON COLUMN segment."processes_sampled" IS 'processes that were alive at one or more samples';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'processes_sampled', nullif('', ''), 'processes that were alive at one or more samples');
COMMENT ON COLUMN segment."peak_rss_bytes" IS 'largest sum of resident memory over the target';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'peak_rss_bytes', nullif('bytes', ''), 'largest sum of resident memory over the target');
COMMENT ON COLUMN segment."main_peak_rss_bytes" IS 'VmHWM of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'main_peak_rss_bytes', nullif('bytes', ''), 'VmHWM of the root process');
COMMENT ON COLUMN segment."read_bytes" IS 'read from storage';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'read_bytes', nullif('bytes', ''), 'read from storage');
COMMENT ON COLUMN segment."written_bytes" IS 'written to storage';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'written_bytes', nullif('bytes', ''), 'written to storage');
COMMENT ON COLUMN segment."major_faults" IS 'page faults that read from storage';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'major_faults', nullif('', ''), 'page faults that read from storage');
COMMENT ON COLUMN segment."minor_faults" IS 'page faults that did not read from storage';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'minor_faults', nullif('', ''), 'page faults that did not read from storage');
COMMENT ON COLUMN segment."voluntary_switches" IS 'context switches because a thread waited';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'voluntary_switches', nullif('', ''), 'context switches because a thread waited');
COMMENT ON COLUMN segment."involuntary_switches" IS 'context switches because a thread was preempted';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'involuntary_switches', nullif('', ''), 'context switches because a thread was preempted');
COMMENT ON COLUMN segment."self_cpu_ns" IS 'CPU time of wattle itself';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'self_cpu_ns', nullif('ns', ''), 'CPU time of wattle itself');
COMMENT ON COLUMN segment."self_max_rss_bytes" IS 'largest resident memory of wattle itself';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'self_max_rss_bytes', nullif('bytes', ''), 'largest resident memory of wattle itself');
COMMENT ON COLUMN segment."self_wakeups" IS 'wakeups of wattle';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'self_wakeups', nullif('', ''), 'wakeups of wattle');
COMMENT ON COLUMN segment."lost_spans" IS 'spans, metrics and marks lost for lack of space';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'lost_spans', nullif('', ''), 'spans, metrics and marks lost for lack of space');
COMMENT ON COLUMN segment."unwound_spans" IS 'spans ended by the end of an outer span';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'unwound_spans', nullif('', ''), 'spans ended by the end of an outer span');
COMMENT ON COLUMN segment."spool_bytes" IS 'bytes of the spool file that are stored in the tables';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'segment', 'spool_bytes', nullif('bytes', ''), 'bytes of the spool file that are stored in the tables');
COMMENT ON COLUMN device."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN device."id" IS 'number of the device in this file';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'id', nullif('', ''), 'number of the device in this file');
COMMENT ON COLUMN device."kind" IS 'package, core, uncore, dram, psys, gpu, node, module, battery, wall or gpu-memory';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'kind', nullif('', ''), 'package, core, uncore, dram, psys, gpu, node, module, battery, wall or gpu-memory');
COMMENT ON COLUMN device."name" IS 'name of the domain: package-0, dram-0, gpu-0 ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'name', nullif('', ''), 'name of the domain: package-0, dram-0, gpu-0 ...');
COMMENT ON COLUMN device."uuid" IS 'UUID of a GPU';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'uuid', nullif('', ''), 'UUID of a GPU');
COMMENT ON COLUMN device."device" IS 'name of the hardware: intel-rapl:0, NVIDIA H100 80GB HBM3 ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'device', nullif('', ''), 'name of the hardware: intel-rapl:0, NVIDIA H100 80GB HBM3 ...');
COMMENT ON COLUMN device."inside" IS 'name of the domain that contains this one';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'inside', nullif('', ''), 'name of the domain that contains this one');
COMMENT ON COLUMN device."idx" IS 'NVML''s index of a GPU, else number of the socket or node';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'idx', nullif('', ''), 'NVML''s index of a GPU, else number of the socket or node');
COMMENT ON COLUMN device."source" IS 'sensor: powercap, nvml, model ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'source', nullif('', ''), 'sensor: powercap, nvml, model ...');
COMMENT ON COLUMN device."provenance" IS 'measured, derived or estimated';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'provenance', nullif('', ''), 'measured, derived or estimated');
COMMENT ON COLUMN device."has_energy" IS '1: energy_uj is an energy counter; 0: power_mw is to be integrated';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'has_energy', nullif('', ''), '1: energy_uj is an energy counter; 0: power_mw is to be integrated');
COMMENT ON COLUMN device."resolution_uj" IS 'smallest step of the counter';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'resolution_uj', nullif('uj', ''), 'smallest step of the counter');
COMMENT ON COLUMN device."energy_range_uj" IS 'the hardware counter wraps at this value; wattle extends it';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'energy_range_uj', nullif('uj', ''), 'the hardware counter wraps at this value; wattle extends it');
COMMENT ON COLUMN device."update_period_ns" IS 'how often the hardware updates its value';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'update_period_ns', nullif('ns', ''), 'how often the hardware updates its value');
COMMENT ON COLUMN device."update_jitter_ns" IS 'half of the spread of update_period_ns';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'update_jitter_ns', nullif('ns', ''), 'half of the spread of update_period_ns');
COMMENT ON COLUMN device."idle_w" IS 'idle power, measured before the run (wattle sensors --calibrate-idle)';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'idle_w', nullif('w', ''), 'idle power, measured before the run (wattle sensors --calibrate-idle)');
COMMENT ON COLUMN device."idle_error_w" IS 'error of idle_w, half of a 95 percent interval';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'idle_error_w', nullif('w', ''), 'error of idle_w, half of a 95 percent interval');
COMMENT ON COLUMN device."idle_temperature_c" IS 'temperature at which idle_w was measured';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'idle_temperature_c', nullif('c', ''), 'temperature at which idle_w was measured');
COMMENT ON COLUMN device."idle_date" IS 'when idle_w was measured, RFC 3339';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'idle_date', nullif('', ''), 'when idle_w was measured, RFC 3339');
COMMENT ON COLUMN device."gain" IS 'calibration of a GPU''s power sensor: factor by which stored readings are multiplied; null: not calibrated';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'gain', nullif('', ''), 'calibration of a GPU''s power sensor: factor by which stored readings are multiplied; null: not calibrated');
COMMENT ON COLUMN device."gain_error" IS 'relative error of gain, half of a 95 percent interval';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'gain_error', nullif('', ''), 'relative error of gain, half of a 95 percent interval');
COMMENT ON COLUMN device."gain_source" IS 'source of gain: an option, or a calibration and its date';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'gain_source', nullif('', ''), 'source of gain: an option, or a calibration and its date');
COMMENT ON COLUMN device."relative_error" IS 'relative error of a reading, 0.01 is 1 percent';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'relative_error', nullif('', ''), 'relative error of a reading, 0.01 is 1 percent');
COMMENT ON COLUMN device."memory_total_bytes" IS 'memory of a GPU';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device', 'memory_total_bytes', nullif('bytes', ''), 'memory of a GPU');
COMMENT ON COLUMN process."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN process."pid" IS 'process id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'pid', nullif('', ''), 'process id');
COMMENT ON COLUMN process."start_ns" IS 'when it started; identifies the process together with the pid';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'start_ns', nullif('ns', ''), 'when it started; identifies the process together with the pid');
COMMENT ON COLUMN process."end_ns" IS 'when it ended; null: alive when recording ended';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'end_ns', nullif('ns', ''), 'when it ended; null: alive when recording ended');
COMMENT ON COLUMN process."ppid" IS 'process id of its parent';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'ppid', nullif('', ''), 'process id of its parent');
COMMENT ON COLUMN process."command" IS 'its command';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'command', nullif('', ''), 'its command');
COMMENT ON COLUMN process."cpu_ns" IS 'its own CPU time, user and system, without children';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'cpu_ns', nullif('ns', ''), 'its own CPU time, user and system, without children');
COMMENT ON COLUMN process."max_rss_bytes" IS 'its largest resident memory';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'max_rss_bytes', nullif('bytes', ''), 'its largest resident memory');
COMMENT ON COLUMN process."is_main" IS '1: the root of the target';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'is_main', nullif('', ''), '1: the root of the target');
COMMENT ON COLUMN process."sampled" IS '1: it was alive at one or more samples';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'sampled', nullif('', ''), '1: it was alive at one or more samples');
COMMENT ON COLUMN process."time" IS 'start_ns by the wall clock of its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process', 'time', nullif('', ''), 'start_ns by the wall clock of its host');
COMMENT ON COLUMN block."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN block."name" IS 'name of the code block';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'name', nullif('', ''), 'name of the code block');
COMMENT ON COLUMN block."timepoints" IS 'samples inside the block';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'timepoints', nullif('', ''), 'samples inside the block');
COMMENT ON COLUMN block."calls" IS 'calls, including recursion and threads';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'calls', nullif('', ''), 'calls, including recursion and threads');
COMMENT ON COLUMN block."non_empty_calls" IS 'calls with at least one sample inside';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'non_empty_calls', nullif('', ''), 'calls with at least one sample inside');
COMMENT ON COLUMN block."unwound" IS 'calls without an end event (longjmp, or a missing end), closed by the end of an outer span';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'unwound', nullif('', ''), 'calls without an end event (longjmp, or a missing end), closed by the end of an outer span');
COMMENT ON COLUMN block."cut" IS 'calls that ended with their thread, program (exec) or process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'cut', nullif('', ''), 'calls that ended with their thread, program (exec) or process');
COMMENT ON COLUMN block."time_total_s" IS 'time of all calls';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_total_s', nullif('s', ''), 'time of all calls');
COMMENT ON COLUMN block."time_min_s" IS 'shortest call';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_min_s', nullif('s', ''), 'shortest call');
COMMENT ON COLUMN block."time_max_s" IS 'longest call';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_max_s', nullif('s', ''), 'longest call');
COMMENT ON COLUMN block."time_mean_s" IS 'mean time of a call';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_mean_s', nullif('s', ''), 'mean time of a call');
COMMENT ON COLUMN block."time_std_s" IS 'standard deviation of the time of a call, of the population';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_std_s', nullif('s', ''), 'standard deviation of the time of a call, of the population');
COMMENT ON COLUMN block."time_p95_s" IS '95th percentile of the time of a call: 95 % of the calls took no longer; of a job, the largest value of its ranks';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'time_p95_s', nullif('s', ''), '95th percentile of the time of a call: 95 % of the calls took no longer; of a job, the largest value of its ranks');
COMMENT ON COLUMN block."active_s" IS 'time in which at least one call ran';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'active_s', nullif('s', ''), 'time in which at least one call ran');
COMMENT ON COLUMN block."self_time_s" IS 'time in which a call was the innermost of its thread';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'self_time_s', nullif('s', ''), 'time in which a call was the innermost of its thread');
COMMENT ON COLUMN block."program_cpu_s" IS 'CPU time of the whole program while the block was active, interpolated between samples';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'program_cpu_s', nullif('s', ''), 'CPU time of the whole program while the block was active, interpolated between samples');
COMMENT ON COLUMN block."cpu_s" IS 'CPU time of the block''s own threads; with --span-cpu';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'cpu_s', nullif('s', ''), 'CPU time of the block''s own threads; with --span-cpu');
COMMENT ON COLUMN block."energy_j" IS 'energy attributed to the program while the block ran, inner blocks and other threads included; null where another rank read the sensors';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'energy_j', nullif('j', ''), 'energy attributed to the program while the block ran, inner blocks and other threads included; null where another rank read the sensors');
COMMENT ON COLUMN block."error_j" IS 'half of the 95 % interval, without the calibration of the sensors';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'error_j', nullif('j', ''), 'half of the 95 % interval, without the calibration of the sensors');
COMMENT ON COLUMN block."self_j" IS 'energy while the block was the innermost block';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'self_j', nullif('j', ''), 'energy while the block was the innermost block');
COMMENT ON COLUMN block."self_error_j" IS 'half of the 95 % interval';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'block', 'self_error_j', nullif('j', ''), 'half of the 95 % interval');
COMMENT ON COLUMN metric."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN metric."table_name" IS 'table of the column';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'table_name', nullif('', ''), 'table of the column');
COMMENT ON COLUMN metric."name" IS 'name of the column';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'name', nullif('', ''), 'name of the column');
COMMENT ON COLUMN metric."unit" IS 'its unit';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'unit', nullif('', ''), 'its unit');
COMMENT ON COLUMN metric."kind" IS 'counter: only differences are meaningful; gauge: the value at that instant; fact';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'kind', nullif('', ''), 'counter: only differences are meaningful; gauge: the value at that instant; fact');
COMMENT ON COLUMN metric."meaning" IS 'meaning of the column';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'meaning', nullif('', ''), 'meaning of the column');
COMMENT ON COLUMN metric."source" IS 'source of the value';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'metric', 'source', nullif('', ''), 'source of the value');
COMMENT ON COLUMN sample."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN sample."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN sample."t_ns" IS 'time of the sample, CLOCK_MONOTONIC';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 't_ns', nullif('ns', ''), 'time of the sample, CLOCK_MONOTONIC');
COMMENT ON COLUMN sample."level" IS '0: first sample of a minute, 1: of a second, 2: all others; also 0 where counting begins';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'level', nullif('', ''), '0: first sample of a minute, 1: of a second, 2: all others; also 0 where counting begins');
COMMENT ON COLUMN sample."self_cpu_ns" IS 'CPU time of wattle itself';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'self_cpu_ns', nullif('ns', ''), 'CPU time of wattle itself');
COMMENT ON COLUMN sample."system_cpu_busy_ns" IS 'busy CPU time of the machine, all cores';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'system_cpu_busy_ns', nullif('ns', ''), 'busy CPU time of the machine, all cores');
COMMENT ON COLUMN sample."system_cpu_idle_ns" IS 'idle CPU time of the machine, all cores';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'system_cpu_idle_ns', nullif('ns', ''), 'idle CPU time of the machine, all cores');
COMMENT ON COLUMN sample."self_rss_bytes" IS 'resident memory of wattle itself';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'self_rss_bytes', nullif('bytes', ''), 'resident memory of wattle itself');
COMMENT ON COLUMN sample."main_cpu_ns" IS 'CPU time of the root process, user and system';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_cpu_ns', nullif('ns', ''), 'CPU time of the root process, user and system');
COMMENT ON COLUMN sample."descendants_cpu_ns" IS 'CPU time of all descendants, including those that have ended';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_cpu_ns', nullif('ns', ''), 'CPU time of all descendants, including those that have ended');
COMMENT ON COLUMN sample."referee_cpu_ns" IS 'CPU time of the target by a second method, as a cross-check';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'referee_cpu_ns', nullif('ns', ''), 'CPU time of the target by a second method, as a cross-check');
COMMENT ON COLUMN sample."system_memory_bytes" IS 'memory in use on the machine';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'system_memory_bytes', nullif('bytes', ''), 'memory in use on the machine');
COMMENT ON COLUMN sample."main_rss_bytes" IS 'resident memory of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_rss_bytes', nullif('bytes', ''), 'resident memory of the root process');
COMMENT ON COLUMN sample."descendants_rss_bytes" IS 'resident memory summed over descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_rss_bytes', nullif('bytes', ''), 'resident memory summed over descendants');
COMMENT ON COLUMN sample."main_pss_bytes" IS 'proportional set size of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_pss_bytes', nullif('bytes', ''), 'proportional set size of the root process');
COMMENT ON COLUMN sample."descendants_pss_bytes" IS 'proportional set size summed over descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_pss_bytes', nullif('bytes', ''), 'proportional set size summed over descendants');
COMMENT ON COLUMN sample."main_uss_bytes" IS 'memory that only the root process maps';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_uss_bytes', nullif('bytes', ''), 'memory that only the root process maps');
COMMENT ON COLUMN sample."descendants_uss_bytes" IS 'memory mapped by one process only, summed over descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_uss_bytes', nullif('bytes', ''), 'memory mapped by one process only, summed over descendants');
COMMENT ON COLUMN sample."main_private_bytes" IS 'private resident memory of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_private_bytes', nullif('bytes', ''), 'private resident memory of the root process');
COMMENT ON COLUMN sample."descendants_private_bytes" IS 'private resident memory summed over descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_private_bytes', nullif('bytes', ''), 'private resident memory summed over descendants');
COMMENT ON COLUMN sample."main_shared_bytes" IS 'memory that the root process shares with any other process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_shared_bytes', nullif('bytes', ''), 'memory that the root process shares with any other process');
COMMENT ON COLUMN sample."descendants_shared_bytes" IS 'shared memory of the descendants: the largest share of a process per mapped path, summed over paths';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_shared_bytes', nullif('bytes', ''), 'shared memory of the descendants: the largest share of a process per mapped path, summed over paths');
COMMENT ON COLUMN sample."combined_shared_bytes" IS 'shared memory of the target: the largest share of a process per mapped path, summed over paths';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'combined_shared_bytes', nullif('bytes', ''), 'shared memory of the target: the largest share of a process per mapped path, summed over paths');
COMMENT ON COLUMN sample."main_ram_bytes" IS 'private plus shared memory of the root process, carried forward from the last reading before this sample';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_ram_bytes', nullif('bytes', ''), 'private plus shared memory of the root process, carried forward from the last reading before this sample');
COMMENT ON COLUMN sample."descendants_ram_bytes" IS 'private plus shared memory of all descendants, carried forward in the same way';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_ram_bytes', nullif('bytes', ''), 'private plus shared memory of all descendants, carried forward in the same way');
COMMENT ON COLUMN sample."combined_ram_bytes" IS 'private plus shared memory of the target, memory shared by root and descendants counted once, carried forward in the same way';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'combined_ram_bytes', nullif('bytes', ''), 'private plus shared memory of the target, memory shared by root and descendants counted once, carried forward in the same way');
COMMENT ON COLUMN sample."main_threads" IS 'threads of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'main_threads', nullif('threads', ''), 'threads of the root process');
COMMENT ON COLUMN sample."descendants_threads" IS 'threads summed over descendants';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'descendants_threads', nullif('threads', ''), 'threads summed over descendants');
COMMENT ON COLUMN sample."processes" IS 'living processes of the target, the root included';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'sample', 'processes', nullif('processes', ''), 'living processes of the target, the root included');
COMMENT ON COLUMN device_sample."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN device_sample."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN device_sample."t_ns" IS 'time of the sample, CLOCK_MONOTONIC';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 't_ns', nullif('ns', ''), 'time of the sample, CLOCK_MONOTONIC');
COMMENT ON COLUMN device_sample."device" IS 'device.id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'device', nullif('', ''), 'device.id');
COMMENT ON COLUMN device_sample."level" IS '0: first sample of a minute, 1: of a second, 2: all others; also 0 where counting begins';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'level', nullif('', ''), '0: first sample of a minute, 1: of a second, 2: all others; also 0 where counting begins');
COMMENT ON COLUMN device_sample."energy_uj" IS 'energy since the start of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'energy_uj', nullif('uj', ''), 'energy since the start of the run');
COMMENT ON COLUMN device_sample."energy_time_ns" IS 'when the hardware last updated its energy counter, CLOCK_MONOTONIC; null: not reported';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'energy_time_ns', nullif('ns', ''), 'when the hardware last updated its energy counter, CLOCK_MONOTONIC; null: not reported');
COMMENT ON COLUMN device_sample."energy_raw_uj" IS 'raw value of the hardware counter where counting begins: at the first reading, after a reset or a gap; otherwise null. It joins the readings of consecutive recorders';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'energy_raw_uj', nullif('uj', ''), 'raw value of the hardware counter where counting begins: at the first reading, after a reset or a gap; otherwise null. It joins the readings of consecutive recorders');
COMMENT ON COLUMN device_sample."memory_used_bytes" IS 'device memory in use, without memory reserved by the driver';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'memory_used_bytes', nullif('bytes', ''), 'device memory in use, without memory reserved by the driver');
COMMENT ON COLUMN device_sample."main_memory_bytes" IS 'device memory of the root process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'main_memory_bytes', nullif('bytes', ''), 'device memory of the root process');
COMMENT ON COLUMN device_sample."target_memory_bytes" IS 'device memory of the target''s processes, summed';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'target_memory_bytes', nullif('bytes', ''), 'device memory of the target''s processes, summed');
COMMENT ON COLUMN device_sample."others_memory_bytes" IS 'device memory of all other processes, summed';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'others_memory_bytes', nullif('bytes', ''), 'device memory of all other processes, summed');
COMMENT ON COLUMN device_sample."throttle_reasons_bits" IS 'reasons why clocks are throttled, NVML''s bit mask';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'throttle_reasons_bits', nullif('bits', ''), 'reasons why clocks are throttled, NVML''s bit mask');
COMMENT ON COLUMN device_sample."power_mw" IS 'power';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'power_mw', nullif('mw', ''), 'power');
COMMENT ON COLUMN device_sample."power_average_mw" IS 'power averaged by the device over about a second';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'power_average_mw', nullif('mw', ''), 'power averaged by the device over about a second');
COMMENT ON COLUMN device_sample."power_cap_mw" IS 'power limit in force';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'power_cap_mw', nullif('mw', ''), 'power limit in force');
COMMENT ON COLUMN device_sample."utilization_percent" IS 'fraction of time in which a kernel ran';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'utilization_percent', nullif('percent', ''), 'fraction of time in which a kernel ran');
COMMENT ON COLUMN device_sample."memory_utilization_percent" IS 'fraction of time in which device memory was read or written';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'memory_utilization_percent', nullif('percent', ''), 'fraction of time in which device memory was read or written');
COMMENT ON COLUMN device_sample."target_utilization_percent" IS 'SM utilization of the target''s processes, summed';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'target_utilization_percent', nullif('percent', ''), 'SM utilization of the target''s processes, summed');
COMMENT ON COLUMN device_sample."others_utilization_percent" IS 'SM utilization of all other processes, summed';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'others_utilization_percent', nullif('percent', ''), 'SM utilization of all other processes, summed');
COMMENT ON COLUMN device_sample."target_processes" IS 'processes of the target on this device';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'target_processes', nullif('processes', ''), 'processes of the target on this device');
COMMENT ON COLUMN device_sample."others_processes" IS 'other processes on this device';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'others_processes', nullif('processes', ''), 'other processes on this device');
COMMENT ON COLUMN device_sample."target_mig_share_ppm" IS 'fraction of the GPU''s SM slices in instances that run processes of the target';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'target_mig_share_ppm', nullif('ppm', ''), 'fraction of the GPU''s SM slices in instances that run processes of the target');
COMMENT ON COLUMN device_sample."others_mig_share_ppm" IS 'fraction of the GPU''s SM slices in instances that run other processes';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'others_mig_share_ppm', nullif('ppm', ''), 'fraction of the GPU''s SM slices in instances that run other processes');
COMMENT ON COLUMN device_sample."temperature_c" IS 'temperature of the GPU or CPU package';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'temperature_c', nullif('c', ''), 'temperature of the GPU or CPU package');
COMMENT ON COLUMN device_sample."sm_clock_mhz" IS 'clock of the streaming multiprocessors';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'sm_clock_mhz', nullif('mhz', ''), 'clock of the streaming multiprocessors');
COMMENT ON COLUMN device_sample."memory_clock_mhz" IS 'clock of the device memory';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'memory_clock_mhz', nullif('mhz', ''), 'clock of the device memory');
COMMENT ON COLUMN device_sample."memory_temperature_c" IS 'temperature of the device memory';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'device_sample', 'memory_temperature_c', nullif('c', ''), 'temperature of the device memory');
COMMENT ON COLUMN process_sample."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN process_sample."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN process_sample."t_ns" IS 'time of the sample, CLOCK_MONOTONIC';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 't_ns', nullif('ns', ''), 'time of the sample, CLOCK_MONOTONIC');
COMMENT ON COLUMN process_sample."start_ns" IS 'process.start_ns';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'start_ns', nullif('ns', ''), 'process.start_ns');
COMMENT ON COLUMN process_sample."pid" IS 'process.pid';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'pid', nullif('', ''), 'process.pid');
COMMENT ON COLUMN process_sample."cpu_ns" IS 'CPU time of the process, user and system';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'cpu_ns', nullif('ns', ''), 'CPU time of the process, user and system');
COMMENT ON COLUMN process_sample."rss_bytes" IS 'resident memory of the process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'rss_bytes', nullif('bytes', ''), 'resident memory of the process');
COMMENT ON COLUMN process_sample."threads" IS 'threads of the process';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'process_sample', 'threads', nullif('threads', ''), 'threads of the process');
COMMENT ON COLUMN span."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN span."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN span."id" IS 'number of the span';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'id', nullif('', ''), 'number of the span');
COMMENT ON COLUMN span."parent" IS 'span.id of the span around it in the same thread';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'parent', nullif('', ''), 'span.id of the span around it in the same thread');
COMMENT ON COLUMN span."begin_ns" IS 'when it began';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'begin_ns', nullif('ns', ''), 'when it began');
COMMENT ON COLUMN span."end_ns" IS 'when it ended; null: never, or still open';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'end_ns', nullif('ns', ''), 'when it ended; null: never, or still open');
COMMENT ON COLUMN span."cpu_ns" IS 'CPU time of its thread during the span, with --span-cpu';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'cpu_ns', nullif('ns', ''), 'CPU time of its thread during the span, with --span-cpu');
COMMENT ON COLUMN span."pid" IS 'process id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'pid', nullif('', ''), 'process id');
COMMENT ON COLUMN span."tid" IS 'thread id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'tid', nullif('', ''), 'thread id');
COMMENT ON COLUMN span."name" IS 'name of the code block';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'name', nullif('', ''), 'name of the code block');
COMMENT ON COLUMN span."category" IS 'category set by the program';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'category', nullif('', ''), 'category set by the program');
COMMENT ON COLUMN span."kind" IS 'nested: begins and ends in one thread; range: started and stopped by a number, may overlap';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'kind', nullif('', ''), 'nested: begins and ends in one thread; range: started and stopped by a number, may overlap');
COMMENT ON COLUMN span."close" IS 'how it ended: ended, open, unwound (by the end of an outer one), thread end, exec, death';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'span', 'close', nullif('', ''), 'how it ended: ended, open, unwound (by the end of an outer one), thread end, exec, death');
COMMENT ON COLUMN user_metric."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN user_metric."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN user_metric."t_ns" IS 'when the program reported the value';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 't_ns', nullif('ns', ''), 'when the program reported the value');
COMMENT ON COLUMN user_metric."value" IS 'the value';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'value', nullif('', ''), 'the value');
COMMENT ON COLUMN user_metric."span" IS 'span.id of the innermost span open in its thread';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'span', nullif('', ''), 'span.id of the innermost span open in its thread');
COMMENT ON COLUMN user_metric."pid" IS 'process id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'pid', nullif('', ''), 'process id');
COMMENT ON COLUMN user_metric."tid" IS 'thread id';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'tid', nullif('', ''), 'thread id');
COMMENT ON COLUMN user_metric."name" IS 'name set by the program: accuracy, tokens ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'user_metric', 'name', nullif('', ''), 'name set by the program: accuracy, tokens ...');
COMMENT ON COLUMN event."run_id" IS 'id of the run';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'run_id', nullif('', ''), 'id of the run');
COMMENT ON COLUMN event."time" IS 'wall-clock time of the row, by its host';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'time', nullif('', ''), 'wall-clock time of the row, by its host');
COMMENT ON COLUMN event."t_ns" IS 'when it happened';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 't_ns', nullif('ns', ''), 'when it happened');
COMMENT ON COLUMN event."rank" IS 'sensors: its rank in the job';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'rank', nullif('', ''), 'sensors: its rank in the job');
COMMENT ON COLUMN event."count" IS 'number of counted items';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'count', nullif('', ''), 'number of counted items');
COMMENT ON COLUMN event."duration_ns" IS 'duration of the event';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'duration_ns', nullif('ns', ''), 'duration of the event');
COMMENT ON COLUMN event."old_value" IS 'cap: the limit before, mW';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'old_value', nullif('', ''), 'cap: the limit before, mW');
COMMENT ON COLUMN event."new_value" IS 'cap: the limit now, mW; throttle: bits as throttle_reasons_bits; cgroup-peak-memory: bytes';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'new_value', nullif('', ''), 'cap: the limit now, mW; throttle: bits as throttle_reasons_bits; cgroup-peak-memory: bytes');
COMMENT ON COLUMN event."slept_ns" IS 'suspend: how long CLOCK_MONOTONIC stood still before t_ns';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'slept_ns', nullif('ns', ''), 'suspend: how long CLOCK_MONOTONIC stood still before t_ns');
COMMENT ON COLUMN event."pid" IS 'sensors: process id of the other recorder';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'pid', nullif('', ''), 'sensors: process id of the other recorder');
COMMENT ON COLUMN event."kind" IS 'gap, wrap, reset, suspend, throttle, cap, sensors, segment, note, mark (of the program), warning, lost ...';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'kind', nullif('', ''), 'gap, wrap, reset, suspend, throttle, cap, sensors, segment, note, mark (of the program), warning, lost ...');
COMMENT ON COLUMN event."reason" IS 'name of the event within its kind; null: recorded by wattle before 1.0';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'reason', nullif('', ''), 'name of the event within its kind; null: recorded by wattle before 1.0');
COMMENT ON COLUMN event."device" IS 'names of the affected domains, separated by blanks';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'device', nullif('', ''), 'names of the affected domains, separated by blanks');
COMMENT ON COLUMN event."sensor" IS 'sensor that should read them';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'sensor', nullif('', ''), 'sensor that should read them');
COMMENT ON COLUMN event."detail" IS 'message of the sensor or the system; mark: the name set by the program';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'detail', nullif('', ''), 'message of the sensor or the system; mark: the name set by the program');
COMMENT ON COLUMN event."text" IS 'the event as a sentence, generated from the other columns';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'event', 'text', nullif('', ''), 'the event as a sentence, generated from the other columns');
COMMENT ON COLUMN wattle_schema."version" IS 'version of these tables and functions';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_schema', 'version', nullif('', ''), 'version of these tables and functions');
COMMENT ON COLUMN wattle_schema."compatible" IS 'oldest version whose programs can still use them';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_schema', 'compatible', nullif('', ''), 'oldest version whose programs can still use them');
COMMENT ON COLUMN wattle_schema."changed" IS 'when the store was updated to this version';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_schema', 'changed', nullif('', ''), 'when the store was updated to this version');
COMMENT ON COLUMN wattle_big."name" IS 'table with one partition per day';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_big', 'name', nullif('', ''), 'table with one partition per day');
COMMENT ON COLUMN wattle_big."has_level" IS 'whether its days are subdivided by level';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_big', 'has_level', nullif('', ''), 'whether its days are subdivided by level');
COMMENT ON COLUMN wattle_big."indexes" IS 'columns of a partition''s B-tree index; level 2 has none';
INSERT INTO metric (run_id, table_name, name, unit, meaning) VALUES (NULL, 'wattle_big', 'indexes', nullif('', ''), 'columns of a partition''s B-tree index; level 2 has none');
UPDATE metric SET kind = 'counter', source = 'CLOCK_PROCESS_CPUTIME_ID' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'self_cpu_ns';
UPDATE metric SET kind = 'counter', source = '/proc/stat user+nice+system+irq+softirq+steal' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'system_cpu_busy_ns';
UPDATE metric SET kind = 'counter', source = '/proc/stat idle+iowait' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'system_cpu_idle_ns';
UPDATE metric SET kind = 'gauge', source = '/proc/self/statm resident' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'self_rss_bytes';
UPDATE metric SET kind = 'counter', source = '/proc/PID/stat, wait4' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_cpu_ns';
UPDATE metric SET kind = 'counter', source = '/proc/PID/stat, wait4' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_cpu_ns';
UPDATE metric SET kind = 'counter', source = 'perf task-clock, inherited' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'referee_cpu_ns';
UPDATE metric SET kind = 'gauge', source = '/proc/meminfo MemTotal-MemAvailable' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'system_memory_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/statm resident' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_rss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/statm resident' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_rss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Pss' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_pss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Pss' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_pss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Private_Clean+Private_Dirty+Private_Hugetlb' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_uss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Private_Clean+Private_Dirty+Private_Hugetlb' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_uss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Private_Clean+Private_Dirty, or /proc/PID/pagemap' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_private_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Private_Clean+Private_Dirty, or /proc/PID/pagemap' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_private_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Shared_Clean+Shared_Dirty, or /proc/PID/pagemap' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_shared_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Shared_Clean+Shared_Dirty, or /proc/PID/pagemap' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_shared_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/smaps Shared_Clean+Shared_Dirty, or /proc/PID/pagemap' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'combined_shared_bytes';
UPDATE metric SET kind = 'gauge', source = 'the last reading, /proc/PID/statm, /proc/PID/stat minflt' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_ram_bytes';
UPDATE metric SET kind = 'gauge', source = 'the last reading, /proc/PID/statm, /proc/PID/stat minflt' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_ram_bytes';
UPDATE metric SET kind = 'gauge', source = 'the last reading, /proc/PID/statm, /proc/PID/stat minflt' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'combined_ram_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/stat num_threads' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'main_threads';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/stat num_threads' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'descendants_threads';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/task/TID/children' WHERE run_id IS NULL AND table_name = 'sample' AND name = 'processes';
UPDATE metric SET kind = 'counter', source = 'the device''s energy counter, extended to 64 bits' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'energy_uj';
UPDATE metric SET kind = 'gauge', source = 'the counter''s own timestamp' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'energy_time_ns';
UPDATE metric SET kind = 'gauge', source = 'the device''s energy counter, raw value' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'energy_raw_uj';
UPDATE metric SET kind = 'gauge', source = 'the device''s power reading, or the load model' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'power_mw';
UPDATE metric SET kind = 'gauge', source = 'the device''s own average, NVML field 185' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'power_average_mw';
UPDATE metric SET kind = 'gauge', source = 'NVML enforced power limit' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'power_cap_mw';
UPDATE metric SET kind = 'gauge', source = 'NVML utilization rates: gpu' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'utilization_percent';
UPDATE metric SET kind = 'gauge', source = 'NVML utilization rates: memory' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'memory_utilization_percent';
UPDATE metric SET kind = 'gauge', source = 'NVML process utilization: sm' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'target_utilization_percent';
UPDATE metric SET kind = 'gauge', source = 'NVML process utilization: sm' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'others_utilization_percent';
UPDATE metric SET kind = 'gauge', source = 'NVML memory info' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'memory_used_bytes';
UPDATE metric SET kind = 'gauge', source = 'NVML running processes' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'main_memory_bytes';
UPDATE metric SET kind = 'gauge', source = 'NVML running processes' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'target_memory_bytes';
UPDATE metric SET kind = 'gauge', source = 'NVML running processes' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'others_memory_bytes';
UPDATE metric SET kind = 'gauge', source = 'NVML running processes' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'target_processes';
UPDATE metric SET kind = 'gauge', source = 'NVML running processes' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'others_processes';
UPDATE metric SET kind = 'gauge', source = 'NVML MIG instances: SM slices' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'target_mig_share_ppm';
UPDATE metric SET kind = 'gauge', source = 'NVML MIG instances: SM slices' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'others_mig_share_ppm';
UPDATE metric SET kind = 'gauge', source = 'NVML temperature, hwmon of CPU and GPU' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'temperature_c';
UPDATE metric SET kind = 'gauge', source = 'NVML clock info: SM' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'sm_clock_mhz';
UPDATE metric SET kind = 'gauge', source = 'NVML clock info: memory' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'memory_clock_mhz';
UPDATE metric SET kind = 'gauge', source = 'NVML field 82, amdgpu''s hwmon temp3 (mem)' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'memory_temperature_c';
UPDATE metric SET kind = 'gauge', source = 'NVML clocks event (throttle) reasons' WHERE run_id IS NULL AND table_name = 'device_sample' AND name = 'throttle_reasons_bits';
UPDATE metric SET kind = 'counter', source = '/proc/PID/stat utime+stime' WHERE run_id IS NULL AND table_name = 'process_sample' AND name = 'cpu_ns';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/statm resident' WHERE run_id IS NULL AND table_name = 'process_sample' AND name = 'rss_bytes';
UPDATE metric SET kind = 'gauge', source = '/proc/PID/stat num_threads' WHERE run_id IS NULL AND table_name = 'process_sample' AND name = 'threads';
-- Functions for writers (tables.h): writers have INSERT on the tables that COPY fills, may call these functions, and read nothing.
-- Each function runs with the rights of its owner, so it checks who owns the run. Names without a schema are those of pg_catalog.
-- With the store's schema on the path, any user who may create functions there (all users in schema public of PostgreSQL 14) could
-- add a better match for a call, which the owner would run. @store@ is the store's schema, @name@ its name as a literal.
DO $make$
BEGIN
	EXECUTE pg_catalog.replace(pg_catalog.replace($functions$

-- Version of this store, and the oldest schema version whose programs can still use it.
CREATE OR REPLACE FUNCTION @store@.wattle_version(OUT version integer, OUT compatible integer)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
	SELECT s.version, s.compatible FROM @store@.wattle_schema s
$$;

-- A run belongs to the role that began it. Its row is locked until the transaction ends, so two senders of one run take turns.
CREATE OR REPLACE FUNCTION @store@.wattle_lock(run uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	writer name;
BEGIN
	SELECT r.sent_by INTO writer FROM @store@.recording r WHERE r.run_id = run FOR UPDATE;
	IF writer IS NULL OR writer <> session_user AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
		RAISE EXCEPTION 'run % belongs to another writer than %', run, session_user USING ERRCODE = 'insufficient_privilege';
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_begin(run uuid) RETURNS TABLE (table_name text, mark bigint, n bigint, ids text)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	INSERT INTO @store@.recording (run_id, sent_by) VALUES (run, session_user) ON CONFLICT (run_id) DO NOTHING;
	PERFORM @store@.wattle_lock(run);
	RETURN QUERY SELECT s.table_name, s.mark, s.n, s.ids::text FROM @store@.sent s WHERE s.run_id = run;
END
$$;

-- Rows of a small table. Columns that the JSON lacks become null, or with `keep` stay unchanged.
CREATE OR REPLACE FUNCTION @store@.wattle_put_rows(run uuid, target text, keys text[], keep boolean, news jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	names text;
	changes text;
BEGIN
	SELECT string_agg(quote_ident(a.attname), ', '),
		string_agg(format(CASE WHEN keep THEN '%1$I = coalesce(excluded.%1$I, t.%1$I)' ELSE '%1$I = excluded.%1$I' END,
			a.attname), ', ') FILTER (WHERE a.attname <> ALL (keys))
		INTO names, changes
		FROM pg_attribute a
		WHERE a.attrelid = to_regclass(format('%I.%I', @name@, target)) AND a.attnum > 0 AND NOT a.attisdropped
			AND a.attname NOT IN ('run_id', 'sent_by');
	EXECUTE format('INSERT INTO %7$I.%1$I AS t (run_id, %5$s %2$s) SELECT $1, %6$s %2$s '
		'FROM jsonb_populate_recordset(NULL::%7$I.%1$I, $2) ON CONFLICT (%3$s) DO UPDATE SET %4$s',
		target, names, array_to_string(array_prepend('run_id', keys), ', '), changes, CASE WHEN keep THEN 'sent_by,' END,
		CASE WHEN keep THEN 'session_user,' END, @name@) USING run, news;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_put(run uuid, rows jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	small record;
BEGIN
	PERFORM @store@.wattle_lock(run);
	IF rows ? 'block' THEN
		DELETE FROM @store@.block b WHERE b.run_id = run;
	END IF;
	FOR small IN SELECT * FROM (VALUES ('run', '{key}'::text[]), ('device', '{id}'), ('segment', '{id}'),
			('process', '{pid,start_ns}'), ('block', '{name}')) AS v (name, keys) LOOP
		IF rows ? small.name THEN
			PERFORM @store@.wattle_put_rows(run, small.name, small.keys, false, rows->small.name);
		END IF;
	END LOOP;
	-- Meanings that the store has for all runs are not stored again for each run.
	IF rows ? 'metric' THEN
		PERFORM @store@.wattle_put_rows(run, 'metric', '{table_name,name}', false, coalesce((SELECT jsonb_agg(e.row)
			FROM jsonb_array_elements(rows->'metric') AS e (row) WHERE NOT EXISTS (SELECT FROM @store@.metric m WHERE m.run_id IS NULL
				AND m.table_name = e.row->>'table_name' AND m.name = e.row->>'name'
				AND m.meaning IS NOT DISTINCT FROM e.row->>'meaning')), '[]'));
	END IF;
	IF rows ? 'recording' THEN
		PERFORM @store@.wattle_put_rows(run, 'recording', '{}', true, jsonb_build_array(rows->'recording'));
	END IF;
	-- Difference between the clocks of host and server, for joining runs of several hosts.
	IF rows->'recording' ? 'host_unix_s' THEN
		UPDATE @store@.recording r SET clock_offset_s = extract(epoch FROM clock_timestamp())::float8
			- (rows->'recording'->>'host_unix_s')::float8 WHERE r.run_id = run;
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_mark(run uuid, marks jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM @store@.wattle_lock(run);
	INSERT INTO @store@.sent AS s (run_id, table_name, mark, n, ids)
		SELECT run, m.table_name, m.mark, m.n, m.ids::int8multirange
		FROM jsonb_to_recordset(marks) AS m (table_name text, mark bigint, n bigint, ids text)
		ON CONFLICT (run_id, table_name) DO UPDATE
		SET mark = greatest(excluded.mark, s.mark), n = excluded.n, ids = excluded.ids, changed = now();
END
$$;

-- Creates a table's partition of a day. It is created separately and then attached: created in place it would block all readers and
-- writers.
CREATE OR REPLACE FUNCTION @store@.wattle_make_day(day date, parent text, has_level boolean, indexed text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	part text := parent || to_char(day, '_YYYYMMDD');
	leaf text;
BEGIN
	EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING DEFAULTS INCLUDING STORAGE) %4$s', @name@, part, parent,
		CASE WHEN has_level THEN 'PARTITION BY LIST (level)' END);
	FOR step IN 0 .. CASE WHEN has_level THEN 2 ELSE 0 END LOOP
		leaf := part;
		IF has_level THEN
			leaf := part || '_' || step;
			EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING DEFAULTS INCLUDING STORAGE)', @name@, leaf, parent);
			EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES IN (%4$s)', @name@, part, leaf, step);
		END IF;
		IF has_level AND step = 2 THEN
			-- Nine rows of ten: a btree would cost a third of all work (docs/scale.md). Only a vacuum summarises a BRIN, and by
			-- default it starts when a fifth of the table is new.
			EXECUTE format('CREATE INDEX ON %I.%I USING brin ("time", run_id uuid_bloom_ops (n_distinct_per_range = 16)) '
				'WITH (pages_per_range = 16)', @name@, leaf);
			EXECUTE format('ALTER TABLE %I.%I SET (autovacuum_vacuum_insert_scale_factor = 0, '
				'autovacuum_vacuum_insert_threshold = 1000000)', @name@, leaf);
		ELSE
			EXECUTE format('CREATE INDEX ON %I.%I (%s)', @name@, leaf, indexed);
			EXECUTE format('CREATE INDEX ON %I.%I USING brin ("time")', @name@, leaf);
		END IF;
	END LOOP;
	EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$L) TO (%5$L)', @name@, parent, part,
		day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_days(first date, last date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	big record;
BEGIN
	IF first < '1970-01-01' OR last > (now() AT TIME ZONE 'UTC')::date + 366 THEN
		RAISE EXCEPTION 'no partitions from % to %: give days between 1970 and a year from now; check the clock of the host',
			first, last USING ERRCODE = 'datetime_field_overflow';
	END IF;
	IF last - first >= 64 THEN
		RAISE EXCEPTION 'no partitions from % to %: at most 64 days at a time', first, last
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	FOR big IN SELECT b.*, d.day FROM @store@.wattle_big b, generate_series(0, last - first) AS i, LATERAL (SELECT first + i) AS d (day)
			WHERE to_regclass(format('%I.%I', @name@, b.name || to_char(d.day, '_YYYYMMDD'))) IS NULL ORDER BY d.day, b.name LOOP
		PERFORM pg_advisory_xact_lock(1465142321, 1); -- "WTL1": one session at a time
		-- Not to_regclass: an advisory lock does not update its view of tables that another session has just created.
		IF NOT EXISTS (SELECT FROM pg_class c WHERE c.relname = big.name || to_char(big.day, '_YYYYMMDD')
				AND c.relnamespace = quote_ident(@name@)::regnamespace) THEN
			PERFORM @store@.wattle_make_day(big.day, big.name, big.has_level, big.indexes);
		END IF;
	END LOOP;
END
$$;

-- Only their owner may run them unless granted.
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = quote_ident(@name@)::regnamespace AND p.proname IN ('wattle_version',
			'wattle_lock', 'wattle_begin', 'wattle_put_rows', 'wattle_put', 'wattle_mark', 'wattle_make_day', 'wattle_days') LOOP
		EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f);
		EXECUTE format('ALTER FUNCTION %s SET timezone = ''UTC''', f);
		EXECUTE format('ALTER FUNCTION %s SET datestyle = ''ISO''', f);
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END
$$;

$functions$, '@store@', pg_catalog.quote_ident(current_schema()::text)), '@name@', pg_catalog.quote_literal(current_schema()::text));
END
$make$;
DELETE FROM wattle_schema;
INSERT INTO wattle_schema (version, compatible) VALUES (1, 1);
