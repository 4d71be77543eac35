// Perfetto's trace processor, which comes as WebAssembly for browsers, under node. trace_processor.py talks to it.
//
//	node trace_processor.mjs FOLDER < [{"trace": PATH, "queries": [SQL, …]}, …]
//
// prints [[ROWS of each query], …] as JSON; 64-bit integers come as texts.
import { openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const CHUNK_BYTES = 8 << 20;
const folder = process.argv[2];
const wasm = readFileSync(`${folder}/trace_processor.wasm`);

// The bundle takes itself for a web worker: it asks for its wasm by a request and is handed a port to talk by.
const worker = { location: { href: 'file:///engine.js' } };
class WasmRequest {
	open() {}
	send() {
		this.response = wasm;
	}
}
console.log = console.warn = () => {}; // it is talkative, and standard output is ours
const bundle = readFileSync(`${folder}/engine_bundle.node.js`, 'utf8');
new Function('self', 'WorkerGlobalScope', 'XMLHttpRequest', 'process', bundle)(worker, Object, WasmRequest);

const { EngineBase } = await import(pathToFileURL(`${folder}/engine.mjs`));
const port = { postMessage: (bytes) => engine.onRpcResponseBytes(bytes) };
class Engine extends EngineBase {
	id = 'tests';
	mode = 'WASM';
	rpcSendRequestBytes(bytes) {
		port.onmessage({ data: bytes });
	}
}
const engine = new Engine();
worker.onmessage({ data: port });
await new Promise((resolve) => setTimeout(resolve)); // it starts before whatever comes next in the queue

async function load(path) {
	const file = openSync(path);
	await engine.resetTraceProcessor({});
	for (;;) {
		const chunk = new Uint8Array(CHUNK_BYTES);
		const size = readSync(file, chunk);
		if (size === 0)
			break;
		await engine.parse(chunk.subarray(0, size));
	}
	await engine.notifyEof();
}

async function rows(sql) {
	const result = await engine.query(sql), names = result.columns(), found = [];
	for (const row = result.iter({}); row.valid(); row.next())
		found.push(Object.fromEntries(names.map((name) => [name, row.get(name)])));
	return found;
}

const answers = [];
for (const { trace, queries } of JSON.parse(readFileSync(0, 'utf8'))) {
	await load(trace);
	const answer = [];
	for (const sql of queries)
		answer.push(await rows(sql));
	answers.push(answer);
}
const plain = (_, value) => (typeof value === 'bigint' ? `${value}` : value);
writeFileSync(1, JSON.stringify(answers, plain));
process.exit(0);
