// The suite that every implementation of `MemoryStore` runs.
import { describe } from 'vitest';
import { testEdges } from './store-edges.contract.ts';
import { testLimits } from './store-limits.contract.ts';
import { testMatch } from './store-match.contract.ts';
import { testNearest } from './store-nearest.contract.ts';
import { testQueries } from './store-queries.contract.ts';
import { testRecords } from './store-records.contract.ts';
import type { OpenStore } from './store-setup.contract.ts';
import { testTenants } from './store-tenants.contract.ts';

export function testMemoryStore(name: string, open: OpenStore): void {
  describe(name, () => {
    testRecords(open);
    testQueries(open);
    testNearest(open);
    testMatch(open);
    testEdges(open);
    testTenants(open);
    testLimits(open);
  });
}

export { START_MS, type OpenStore, type StoreHarness } from './store-setup.contract.ts';
