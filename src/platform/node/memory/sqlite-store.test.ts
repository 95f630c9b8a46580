import { testMemoryStore } from '../../../memory/store/memory-store.contract.ts';
import { START_MS } from '../../../memory/store/store-setup.contract.ts';
import { DRIVERS, newFolder, openAt } from './memory-setup.contract.ts';

for (const driver of DRIVERS) {
  testMemoryStore(`on SQLite (${driver})`, async () => {
    const clock = { ms: START_MS };
    const folder = newFolder();
    const open = () => openAt(folder, { driver, now: () => clock.ms }).store;
    const store = open();
    const reopen = async () => {
      await store.close();
      return open();
    };
    return { store, clock, reopen };
  });
}
