// A gateway in front of three server processes: its own time per request, and what prefix affinity is worth on a replayed trace of
// growing conversations, against the same gateway without a fleet secret (round robin, as requests come one after the other) and
// against one node with a cache for all. The simulator of `fleet-sim` replays the same trace with times measured on these nodes.
// `--part adapters` publishes adapters to three nodes over a real NATS server instead. `--part chaos` kills the processes of a fleet under
// load, and counts lost writes, wrong answers and failed requests. `--part batch` kills the servers of batches, and counts results per line.
//   npm run bench -- fleet [--part gateway|adapters|chaos|batch] [--rounds 10] [--seconds 300] [--lines 10000] [--batches 1] [--servers 1] [--model FILE] [--conversations 12] [--turns 5] [--words 300] [--requests 1000] [--seed 1]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createServeFolder, type ServeFolder, type ServeProcess } from '../test/support/serve-process.ts';
import { benchModel } from './support/bench-model.ts';
import { benchBatchChaos } from './support/chaos/batch-chaos.ts';
import { benchFleetChaos } from './support/chaos/fleet-chaos.ts';
import { benchFleetAdapters } from './support/fleet-adapters.ts';
import { createFleetTrace, type TraceRequest } from './support/fleet-trace.ts';
import {
  type FittedService,
  fitService,
  type ServiceSample,
  simError,
  simulateReplay,
} from './support/fleet-sim/replay-sim.ts';
import { median, printTable } from './support/report.ts';

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'gateway' },
    rounds: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '300' },
    lines: { type: 'string', default: '10000' },
    batches: { type: 'string', default: '1' },
    servers: { type: 'string', default: '1' },
    model: { type: 'string' },
    conversations: { type: 'string', default: '12' },
    turns: { type: 'string', default: '5' },
    words: { type: 'string', default: '300' },
    requests: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
  },
});
const count = (
  name:
    'rounds' | 'seconds' | 'lines' | 'batches' | 'servers' | 'conversations' | 'turns' | 'words' | 'requests' | 'seed',
): number => {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`error: --${name} must be a whole number above 0`);
  process.exit(2);
};
const NUM_NODES = 3;
/** Turns that measure a node are this many times as long as those of the trace. */
const TURN_FACTORS = [1, 4];
const SECRET = 'the secret of the fleet in this benchmark';
const model = values.model ?? benchModel('15m', 'Q8_0').path;
if (values.part === 'adapters') {
  await benchFleetAdapters({ numRounds: count('rounds'), model });
  process.exit(0);
}
if (values.part === 'chaos') {
  const isWhole = await benchFleetChaos({ seconds: count('seconds'), seed: count('seed'), model, log: (line) => console.error(`  ${line}`) }); // prettier-ignore
  process.exit(isWhole ? 0 : 1);
}
if (values.part === 'batch') {
  const isWhole = await benchBatchChaos({ numLines: count('lines'), numBatches: count('batches'), numServers: count('servers'), seed: count('seed'), log: (line) => console.error(`  ${line}`) }); // prettier-ignore
  process.exit(isWhole ? 0 : 1);
}
if (values.part !== 'gateway') {
  console.error(`error: --part must be gateway, adapters, chaos or batch, got ${values.part}`);
  process.exit(2);
}
const trace = createFleetTrace({
  numConversations: count('conversations'),
  numTurns: count('turns'),
  firstWords: count('words'),
  turnWords: Math.ceil(count('words') / 10),
  seed: count('seed'),
});

const kernels = { RUVLLM_KERNELS: '' };
const inFleet = createServeFolder({ contextLength: 512, environment: { ...kernels, RUVLLM_FLEET_SECRET: SECRET } });
const plain = createServeFolder({ contextLength: 512, environment: kernels });

const NO_RATE_LIMIT = ['--requests-per-minute', '1000000'];

const startNodes = (numNodes: number): Promise<ServeProcess[]> =>
  Promise.all(Array.from({ length: numNodes }, () => inFleet.launch({ onErrorOutput() {} }, `m=${model}`, '--no-memory', '--no-dashboard', '--threads', '1', ...NO_RATE_LIMIT))); // prettier-ignore
const startGateway = (folder: ServeFolder, nodes: readonly ServeProcess[]): Promise<ServeProcess> =>
  folder.launch({ command: 'gateway', onErrorOutput() {} }, ...nodes.flatMap(({ url }) => ['--node', url]), ...NO_RATE_LIMIT); // prettier-ignore

async function send(url: string, body: object): Promise<Response> {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 2, ignore_eos: true, temperature: 0, ...body }),
  });
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
  return response;
}

interface Replay {
  readonly ttftMs: number;
  readonly hitShare: number;
  readonly requests: readonly ServiceSample[];
}

/** Time to the first event, and the share of prompt tokens that came from a cache. */
async function replay(
  urlOf: (conversation: number) => string,
  trace: readonly Pick<TraceRequest, 'prompt' | 'conversation'>[],
): Promise<Replay> {
  const requests: ServiceSample[] = [];
  let [numCached, numTokens] = [0, 0];
  for (const { prompt, conversation } of trace) {
    const startMs = performance.now();
    const response = await send(urlOf(conversation), { prompt, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let ms = NaN;
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      if (text === '') ms = performance.now() - startMs;
      text += chunk;
    }
    const usage = /"usage":(\{"prompt_tokens".*?\}\})/.exec(text);
    if (usage === null) throw new Error('a stream without usage');
    const { prompt_tokens: all, prompt_tokens_details: details } = JSON.parse(usage[1]!) as { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }; // prettier-ignore
    numCached += details.cached_tokens;
    numTokens += all;
    requests.push({ ms, numPromptTokens: all, numTokens: all - details.cached_tokens });
  }
  return { ttftMs: median(requests.map(({ ms }) => ms)), hitShare: numCached / numTokens, requests };
}

/** Processor time of a process so far, which other processes of the machine do not change; null: not known on this system. */
function processorMs({ process: { pid } }: ServeProcess): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10; // user and system time in ticks of 10 ms
  } catch {
    return null;
  }
}

/** Requests until the compiler has seen the gateway's code often: it runs for weeks, and 2,000 still cost twice as much each as later ones. */
const NUM_WARM_UP = 6000;
const NUM_WARM_UP_CLIENTS = 8;

/** The same short request to a node and through the gateway, in turns. */
async function measureOverhead(node: ServeProcess, through: ServeProcess, numRequests: number) {
  const [direct, gateway] = [node.url, through.url];
  const ask = async (url: string): Promise<string> => (await send(url, { prompt: 'dog cat', max_tokens: 1 })).text();
  const warmUp = async (): Promise<void> => {
    for (let i = 0; i < NUM_WARM_UP / NUM_WARM_UP_CLIENTS; i++) await ask(gateway);
  };
  await Promise.all(Array.from({ length: NUM_WARM_UP_CLIENTS }, warmUp));
  const times: Record<string, number[]> = { [direct]: [], [gateway]: [] };
  const startCpuMs = processorMs(through);
  for (let i = 0; i < numRequests; i++) {
    for (const url of i % 2 === 0 ? [direct, gateway] : [gateway, direct]) {
      const startMs = performance.now();
      await ask(url);
      times[url]!.push(performance.now() - startMs);
    }
  }
  const endCpuMs = processorMs(through);
  return {
    overheadMs: median(times[gateway]!) - median(times[direct]!),
    cpuMs: startCpuMs === null || endCpuMs === null ? null : (endCpuMs - startCpuMs) / numRequests,
  };
}

interface MeasuredReplay extends Replay {
  readonly service: FittedService;
}

/** Requests between two rounds of measured prompts: other work on this machine changes all times. */
const SERVICE_EVERY = 6;

/** Replays the trace, and measures each of the nodes in between with two turns of other conversations. */
async function replayMeasured(folder: ServeFolder, nodes: readonly ServeProcess[]): Promise<MeasuredReplay> {
  // In turns, as in the replay: a node that computes alone has the caches of the processor for itself.
  const alone = await Promise.all(nodes.map((node) => startGateway(folder, [node])));
  const { url } = await startGateway(folder, nodes);
  // The first turn and the second one, of each length.
  const byKind: ServiceSample[][] = TURN_FACTORS.flatMap(() => [[], []]);
  const sample = async (round: number): Promise<void> => {
    for (const [i, factor] of TURN_FACTORS.entries()) {
      const turnWords = factor * Math.ceil(count('words') / 10);
      const shape = { numConversations: nodes.length, numTurns: 2, firstWords: count('words'), turnWords, seed: 1000 + 100 * round + i }; // prettier-ignore
      const { requests } = await replay((conversation) => alone[conversation]!.url, createFleetTrace(shape));
      if (round === 0) continue; // warms up
      requests.forEach((request, at) => byKind[2 * i + Math.floor(at / nodes.length)]!.push(request));
    }
  };
  await sample(0);
  const parts: Replay[] = [];
  for (let from = 0; from < trace.length; from += SERVICE_EVERY) {
    await sample(1 + from);
    parts.push(await replay(() => url, trace.slice(from, from + SERVICE_EVERY)));
  }
  const requests = parts.flatMap((part) => part.requests);
  const sum = (of: (request: Replay['requests'][number]) => number): number => requests.reduce((all, one) => all + of(one), 0); // prettier-ignore
  const samples = byKind.map((all): ServiceSample => ({
    numPromptTokens: median(all.map(({ numPromptTokens }) => numPromptTokens)),
    numTokens: median(all.map(({ numTokens }) => numTokens)),
    ms: median(all.map(({ ms }) => ms)),
  }));
  return {
    requests,
    ttftMs: median(requests.map(({ ms }) => ms)),
    hitShare: 1 - sum(({ numTokens }) => numTokens) / sum(({ numPromptTokens }) => numPromptTokens),
    service: fitService(samples),
  };
}

async function withNodes<T>(numNodes: number, work: (nodes: readonly ServeProcess[]) => Promise<T>): Promise<T> {
  try {
    return await work(await startNodes(numNodes));
  } finally {
    inFleet.killAll();
    plain.killAll();
  }
}

try {
  const { overheadMs, cpuMs } = await withNodes(1, async ([node]) =>
    measureOverhead(node!, await startGateway(inFleet, [node!]), count('requests')),
  );
  const single = await withNodes(1, async (nodes) => {
    const { url } = await startGateway(inFleet, nodes);
    return replay(() => url, trace);
  });
  const roundRobin = await withNodes(NUM_NODES, (nodes) => replayMeasured(plain, nodes));
  const affine = await withNodes(NUM_NODES, (nodes) => replayMeasured(inFleet, nodes));
  const replayed = trace.map(({ conversation }, i) => ({
    conversation,
    numTokens: single.requests[i]!.numPromptTokens,
  }));
  const simulated = simulateReplay(replayed, { policy: 'affine', numNodes: NUM_NODES, service: affine.service });
  const simulatedRound = simulateReplay(replayed, {
    policy: 'least loaded',
    numNodes: NUM_NODES,
    service: roundRobin.service,
  });
  const row = (name: string, { ttftMs, hitShare }: Pick<Replay, 'ttftMs' | 'hitShare'>): string[] => [
    name,
    ttftMs.toFixed(1),
    hitShare.toFixed(3),
  ];
  printTable([
    ['', 'time to first token, ms p50', 'cached share of the prompts'],
    row('one node', single),
    row(`round robin, ${NUM_NODES} nodes`, roundRobin),
    row('  simulated', { ...simulatedRound, ttftMs: simulatedRound.p50Ms }),
    row(`prefix affinity, ${NUM_NODES} nodes`, affine),
    row('  simulated', { ...simulated, ttftMs: simulated.p50Ms }),
  ]);
  console.log(`measured on the nodes: ${affine.service.fixedMs.toFixed(1)} ms per request, ${(1000 * affine.service.tokenMs).toFixed(0)} µs per token to compute, ${(1e6 * affine.service.attentionMs).toFixed(0)} ns per token before it`); // prettier-ignore
  console.log(
    JSON.stringify({
      bench: 'fleet',
      requests: trace.length,
      gateway_overhead_ms: Number(overheadMs.toFixed(3)),
      gateway_cpu_ms: cpuMs === null ? null : Number(cpuMs.toFixed(3)),
      ttft_gain: Number((roundRobin.ttftMs / affine.ttftMs).toFixed(2)),
      affinity_hit_share: Number((affine.hitShare / single.hitShare).toFixed(3)),
      round_robin_hit_share: Number((roundRobin.hitShare / single.hitShare).toFixed(3)),
      service_fixed_ms: Number(affine.service.fixedMs.toFixed(2)),
      service_attention_ms: Number(affine.service.attentionMs.toExponential(3)),
      service_token_ms: Number(affine.service.tokenMs.toFixed(4)),
      sim_error: Number(simError(simulated, affine).toFixed(3)),
      sim_error_round_robin: Number(simError(simulatedRound, roundRobin).toFixed(3)),
    }),
  );
} finally {
  inFleet.dispose();
  plain.dispose();
}
