// SIGTERM in a burst of connections, most of them idle: the system has completed them, and the process has not taken them yet. Every
// request among them must be answered, and the process must end in its time. In every second round a gateway is stopped.
import type { ServeProcess } from '../../test/support/serve-process.ts';
import { connectBurst, parseAnswers } from '../../test/support/raw-http.ts';
import { createClock, type Part, percentileOf, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { createSite, kill, type Site } from '../support/site.ts';

const NUM_IDLE = 2000;
const NUM_ASKING = 40;
const SHUTDOWN_S = 20;
/** An engine that does not stop is ended 5 s later; a busy machine takes a moment. */
const EXIT_LIMIT_MS = (SHUTDOWN_S + 10) * 1000;

function requestOf(token: string, number: number): string {
  const body = JSON.stringify({ model: 'm', prompt: `Once ${number}`, max_tokens: 2, seed: 1 });
  return [
    'POST /v1/completions HTTP/1.1',
    'host: 127.0.0.1',
    'content-type: application/json',
    `authorization: Bearer ${token}`,
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

function startGateway({ folder }: Site, node: ServeProcess): Promise<ServeProcess> {
  const options = { command: 'gateway', onErrorOutput() {} } as const;
  return folder.launch(options, '--node', node.url, '--shutdown-timeout', String(SHUTDOWN_S));
}

interface Tally {
  readonly problems: string[];
  readonly exitMs: number[];
  numCut: number;
  numRefused: number;
}

async function stopInBurst(stopped: ServeProcess, token: string, name: string, tally: Tally): Promise<void> {
  const asking = Array.from({ length: NUM_ASKING }, (_, i) => requestOf(token, i));
  const { texts } = await connectBurst(stopped.url, [...Array.from({ length: NUM_IDLE }, () => ''), ...asking]);
  const began = performance.now();
  stopped.process.kill('SIGTERM');
  const answers = (await texts).slice(NUM_IDLE).map((text) => parseAnswers(text)[0]);
  const code = await stopped.exit;
  const ms = performance.now() - began;
  tally.exitMs.push(ms);
  if (code !== 0) tally.problems.push(`the ${name} ended with ${code}`);
  if (ms > EXIT_LIMIT_MS) tally.problems.push(`the ${name} took ${Math.round(ms)} ms to end`);
  for (const answer of answers) {
    if (answer?.status === 200 && answer.body.includes('"choices"')) continue;
    if (answer === undefined || answer.status === 200) tally.numCut++;
    else tally.numRefused++;
    tally.problems.push(`the ${name} answered a waiting request with ${answer?.status ?? 'nothing'}`);
  }
}

export const drain: Part = {
  name: 'drain',
  summary: `SIGTERM in a burst of ${NUM_IDLE} connections`,
  async run(options) {
    const clock = createClock(options, 10);
    const tally: Tally = { problems: [], exitMs: [], numCut: 0, numRefused: 0 };
    const site = await createSite({ args: () => ['--no-memory', '--shutdown-timeout', String(SHUTDOWN_S)] });
    try {
      while (clock.next()) {
        const isGateway = clock.rounds % 2 === 0;
        const server = await site.start();
        // The model is loaded.
        const body = { model: 'm', prompt: 'Once', max_tokens: 1 };
        await ask(server.url, '/v1/completions', { token: site.tokens.alice, body });
        if (isGateway) {
          await stopInBurst(await startGateway(site, server), site.tokens.alice, 'gateway', tally);
          await kill(server);
        } else await stopInBurst(server, site.tokens.alice, 'server', tally);
        options.log(`${clock.rounds} stops, ${tally.numCut} requests cut, ${tally.numRefused} refused`);
      }
    } finally {
      site.dispose();
    }
    return {
      figures: {
        stops: clock.rounds,
        drain_connections: NUM_IDLE + NUM_ASKING,
        drain_requests: clock.rounds * NUM_ASKING,
        drain_cut: tally.numCut,
        drain_refused: tally.numRefused,
        drain_ms: percentileOf(tally.exitMs, 0.5),
      },
      problems: shorten(tally.problems),
    };
  },
};
