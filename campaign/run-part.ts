import type { Part, PartOptions, PartResult } from './part.ts';

/** Runs one part and prints its figures. A part that cannot run here says why; one that throws has a problem. */
export async function runPart(part: Part, options: PartOptions): Promise<PartResult> {
  const reason = part.whySkipped?.() ?? null;
  if (reason !== null) {
    console.log(`${part.name}: skipped, ${reason}`);
    return { figures: { skipped: reason }, problems: [], slowness: [] };
  }
  console.error(`${part.name}: ${part.summary}, seed ${options.seed} …`);
  const began = performance.now();
  const {
    figures,
    problems,
    slowness = [],
  } = await part.run(options).catch((error: unknown): PartResult => ({
    figures: {},
    problems: [`the part failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`],
  }));
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(`${part.name} (${seconds} s)`);
  for (const [name, value] of Object.entries(figures)) console.log(`  ${name.padEnd(28)} ${String(value)}`);
  for (const problem of problems) console.log(`  PROBLEM ${problem}`);
  for (const problem of slowness) console.log(`  SLOW ${problem}`);
  return { figures: { ...figures, seconds }, problems, slowness };
}
