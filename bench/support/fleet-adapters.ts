import { createNatsServer, hasNats } from '../../test/support/nats-server.ts';
import { startFleetCommand, writeAdapter } from '../../test/support/fleet-commands.ts';
import { createServeFolder } from '../../test/support/serve-process.ts';
import { median, printTable } from './report.ts';

const NUM_NODES = 3;

interface Round {
  readonly preparedMs: number;
  readonly activeMs: number | null;
  readonly totalMs: number;
  /** The whole command, with the start of its process. */
  readonly commandMs: number;
}

/** Publishes two adapters in turns to three nodes, and measures from the commit until the last node reports it active. */
export async function benchFleetAdapters({ numRounds, model }: { readonly numRounds: number; readonly model: string }) {
  if (!hasNats) throw new Error('this part requires nats-server');
  const nats = await createNatsServer();
  nats.start();
  const secret = 'the secret of the fleet in this benchmark';
  const folder = createServeFolder({ contextLength: 512, environment: { RUVLLM_KERNELS: '', RUVLLM_FLEET_SECRET: secret, RUVLLM_NATS_URL: nats.url } }); // prettier-ignore
  try {
    const files = [await writeAdapter(folder, 'a.gguf', 1, model), await writeAdapter(folder, 'b.gguf', 2, model)];
    const { key } = JSON.parse(folder.run('fleet', 'key').stdout) as { key: string };
    folder.run('fleet', 'trust', key);
    const start = () => folder.launch({ onErrorOutput() {} }, `m=${model}`, '--no-memory', '--no-dashboard', '--threads', '1'); // prettier-ignore
    await Promise.all(Array.from({ length: NUM_NODES }, start));
    const rounds: Round[] = [];
    // The first one warms up.
    for (let i = 0; i <= numRounds; i++) {
      const startMs = performance.now();
      const { status, json, output } = await startFleetCommand(folder, 'publish', files[i % 2]!, '--name', 'style', '--model', 'm', '--json').end; // prettier-ignore
      if (status !== 0) throw new Error(output);
      if (i > 0) rounds.push({ ...(json as unknown as Round), commandMs: performance.now() - startMs });
    }
    const late = rounds.filter(({ activeMs }) => activeMs === null).length;
    const figures = {
      prepared: rounds.map(({ preparedMs }) => preparedMs),
      active: rounds.map(({ activeMs }) => activeMs ?? Infinity),
      total: rounds.map(({ totalMs }) => totalMs),
      command: rounds.map(({ commandMs }) => commandMs),
    };
    const row = (name: string, values: readonly number[]): string[] => [name, median(values).toFixed(1), Math.max(...values).toFixed(1)]; // prettier-ignore
    printTable([
      [`${NUM_NODES} nodes, ${numRounds} publications`, 'ms p50', 'ms max'],
      row('proposal to prepared on all', figures.prepared),
      row('commit to active on all', figures.active),
      row('publication', figures.total),
      row('command, with its start', figures.command),
    ]);
    const round = (value: number): number => Number(value.toFixed(1));
    console.log(
      JSON.stringify({
        bench: 'fleet adapters',
        nodes: NUM_NODES,
        publications: numRounds,
        late,
        prepared_ms: round(median(figures.prepared)),
        active_ms: round(median(figures.active)),
        active_max_ms: round(Math.max(...figures.active)),
        publication_ms: round(median(figures.total)),
        command_ms: round(median(figures.command)),
      }),
    );
  } finally {
    folder.dispose();
    await nats.dispose();
  }
}
