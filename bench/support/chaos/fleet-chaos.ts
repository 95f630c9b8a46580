import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../../src/core/random.ts';
import {
  findPostgres,
  freePort,
  startMachineServer,
} from '../../../src/platform/node/memory/postgres-server.contract.ts';
import { createNatsServer, hasNats } from '../../../test/support/nats-server.ts';
import { createServeFolder } from '../../../test/support/serve-process.ts';
import { printTable } from '../report.ts';
import { contentOf, questionOf, runMixedLoad } from './mixed-load.ts';
import { findLost } from './read-back.ts';
import { type Supervised, superviseRuvllm } from './supervised.ts';

const NUM_NODES = 3;
const NUM_GATEWAYS = 2;
const NUM_CLIENTS = 4;
const NUM_PROMPTS = 24;
const KILL_EVERY_MS = 5000;
const RECOVER_MS = 60_000;

export interface ChaosOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly model: string;
  readonly log: (line: string) => void;
}

/** Kills the processes of a fleet one after the other under a mixed load, and counts what clients noticed. */
export async function benchFleetChaos({ seconds, seed, model, log }: ChaosOptions): Promise<boolean> {
  const postgresBin = findPostgres();
  if (!hasNats || postgresBin === null) throw new Error('this part requires nats-server and PostgreSQL');
  const [nats, postgres] = [await createNatsServer(), await startMachineServer(postgresBin)];
  nats.start();
  const folder = createServeFolder({
    contextLength: 512,
    environment: {
      RUVLLM_KERNELS: '',
      RUVLLM_FLEET_SECRET: 'the secret of the fleet in this benchmark',
      RUVLLM_NATS_URL: nats.url,
    },
  });
  const running: Supervised[] = [];
  const output: string[] = [];
  const supervise = async (
    name: string,
    command: 'serve' | 'gateway',
    port: number,
    ...args: string[]
  ): Promise<string> => {
    running.push(await superviseRuvllm(folder, { name, command, args: [...args, '--port', String(port)], onErrorOutput: (text) => output.push(`${name}: ${text}`) })); // prettier-ignore
    return `http://127.0.0.1:${port}`;
  };
  try {
    // Learning from the ratings would change the answers.
    const nodeArgs = [`m=${model}`, '--memory', `${postgres.connectionString}?vectors=sealed`, '--memory-embedder', 'static', '--no-learning', '--no-dashboard', '--threads', '1']; // prettier-ignore
    const ports = await Promise.all(Array.from({ length: NUM_NODES + NUM_GATEWAYS }, freePort));
    const nodes = [await supervise('node 1', 'serve', ports[0]!, ...nodeArgs)];
    const expected = new Map<string, string>();
    for (let i = 0; i < NUM_PROMPTS; i++) {
      const prompt = `question ${i} about ${'dog cat tree '.repeat(1 + (i % 6))}`;
      const response = await fetch(`${nodes[0]}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(questionOf(prompt)) }); // prettier-ignore
      expected.set(prompt, contentOf(await response.text()));
    }
    for (let i = 1; i < NUM_NODES; i++) nodes.push(await supervise(`node ${i + 1}`, 'serve', ports[i]!, ...nodeArgs));
    const gateways: string[] = [];
    for (let i = 0; i < NUM_GATEWAYS; i++) gateways.push(await supervise(`gateway ${i + 1}`, 'gateway', ports[NUM_NODES + i]!, '--health-interval', '0.5')); // prettier-ignore
    await untilWhole(gateways, nodes);

    const targets: { readonly name: string; kill(): Promise<void> }[] = [
      ...running,
      { name: 'nats-server', kill: async () => void (await nats.kill(), nats.start()) },
      { name: 'PostgreSQL', kill: async () => void (await postgres.killAll(), await postgres.start()) },
    ];
    const over = new AbortController();
    const loading = runMixedLoad({ gateways, expected, seed, numClients: NUM_CLIENTS, signal: over.signal });
    const random = createRandom(seed);
    const kills = new Map<string, number>(targets.map(({ name }) => [name, 0]));
    const endMs = performance.now() + 1000 * seconds;
    const restarts: Promise<void>[] = [];
    let numSpared = 0;
    while (performance.now() + KILL_EVERY_MS < endMs) {
      await sleep(KILL_EVERY_MS);
      const index = Math.floor(random.next() * targets.length);
      const target = targets[index]!;
      // Starts take seconds on a busy machine: without any node or gateway, every request fails.
      const others = index < NUM_NODES ? nodes : index < running.length ? gateways : null;
      if (others !== null && !(await hasOther(others, index < NUM_NODES ? index : index - NUM_NODES))) {
        numSpared++;
        continue;
      }
      log(`kill -9 ${target.name}`);
      kills.set(target.name, kills.get(target.name)! + 1);
      restarts.push(target.kill());
    }
    await sleep(Math.max(0, endMs - performance.now()));
    over.abort();
    const seen = await loading;
    await Promise.all(restarts);
    await untilWhole(gateways, nodes);
    const { lost, numRead } = await findLost(gateways[0]!, seen);

    for (const [name, list] of Object.entries({ lost, wrong: seen.wrong, 'failed unsent': seen.failedUnsent })) for (const line of list.slice(0, 20)) log(`${name}: ${line}`); // prettier-ignore
    const numCrashes = running.reduce((sum, one) => sum + one.numCrashes, 0);
    if (numCrashes > 0 || process.env['CHAOS_OUTPUT'] !== undefined) log(output.join('').slice(-20_000));
    printTable([['killed', 'times'], ...[...kills].map(([name, times]) => [name, String(times)])]);
    console.log(
      JSON.stringify({
        bench: 'fleet chaos',
        seconds,
        seed,
        kills: [...kills.values()].reduce((sum, times) => sum + times, 0),
        spared: numSpared,
        requests: seen.numRequests,
        acknowledged: seen.numAcknowledged,
        read_back: numRead,
        lost: lost.length,
        wrong: seen.wrong.length,
        failed_unsent: seen.failedUnsent.length,
        moved_to_other_gateway: seen.numMoved,
        ended_with_error: seen.numEndedWithError,
        cut_by_gateway: seen.numCut,
        refused_writes: seen.numRefusedWrites,
        unknown_writes: seen.numUnknownWrites,
        crashes: numCrashes,
      }),
    );
    return lost.length + seen.wrong.length + seen.failedUnsent.length + numCrashes === 0;
  } finally {
    await Promise.all(running.map((one) => one.stop()));
    folder.dispose();
    await nats.dispose();
    await postgres.stop();
  }
}

/** Whether another one of them answers, and can take requests. */
async function hasOther(urls: readonly string[], index: number): Promise<boolean> {
  const others = await Promise.all(urls.filter((_, i) => i !== index).map((url) => fetch(`${url}/health`).then(({ ok }) => ok, () => false))); // prettier-ignore
  return others.includes(true);
}

/** Until every gateway sees every node, and every node its memory. */
async function untilWhole(gateways: readonly string[], nodes: readonly string[]): Promise<void> {
  const endMs = performance.now() + RECOVER_MS;
  let last = '';
  while (performance.now() < endMs) {
    const answers = await Promise.all(
      [...gateways, ...nodes].map((url) => fetch(`${url}/health`).then(async (response) => ({ status: response.status, text: await response.text() }), () => ({ status: 0, text: '' }))), // prettier-ignore
    );
    last = JSON.stringify(answers);
    const isWhole = answers.every(({ status, text }, i) => status === 200 && !/"degraded":\s*\["/.test(text) && (i >= gateways.length || text.includes(`"nodes_up":${nodes.length}`))); // prettier-ignore
    if (isWhole) return;
    await sleep(100);
  }
  throw new Error(`the fleet did not recover within ${RECOVER_MS} ms: ${last}`);
}
