import { expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { simulate, type SimulationCounts } from '../../test/support/simulation.ts';

/** The short form covers each event; combinations of two rare ones need the long form. */
const NUM_SIMULATIONS = campaign({ short: 160, long: 2000 });

test('[E1] [E3] [E8] [E10] [E13] [E14] [E15] simulated engines give every request the tokens it gets alone', async () => {
  const totals: Partial<SimulationCounts> = {};
  for (let seed = 0; seed < NUM_SIMULATIONS; seed++) {
    const counts = await simulate(seed).catch((error: unknown) => {
      throw new Error(`simulation with seed ${seed}`, { cause: error });
    });
    for (const [name, count] of Object.entries(counts) as [keyof SimulationCounts, number][]) {
      totals[name] = (totals[name] ?? 0) + count;
    }
  }
  // Events that did not happen were not tested.
  for (const [name, count] of Object.entries(totals)) expect(count, name).toBeGreaterThan(NUM_SIMULATIONS / 40);
});
