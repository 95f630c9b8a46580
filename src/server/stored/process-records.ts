import type { Clock } from '../../core/clock.ts';
import type { StoredHead, StoredRecords } from '../../runtime/lower-layers.ts';

/** Objects that last as long as the process: for servers without a memory. */
export function createProcessRecords({ wallClock }: Pick<Clock, 'wallClock'>): StoredRecords {
  const tenants = new Map<string, Map<string, { readonly head: StoredHead; readonly text: string }>>();
  const isCurrent = ({ expiresMs }: StoredHead): boolean => expiresMs > wallClock();
  return {
    tenants: () => [...tenants.keys()],
    heads: async (tenant) => [...(tenants.get(tenant)?.values() ?? [])].map(({ head }) => head).filter(isCurrent),
    async read(tenant, id) {
      const object = tenants.get(tenant)?.get(id);
      return object === undefined || !isCurrent(object.head) ? null : object;
    },
    async put(tenant, head, text) {
      const objects = tenants.get(tenant) ?? new Map<string, { head: StoredHead; text: string }>();
      objects.delete(head.id); // to the end
      tenants.set(tenant, objects.set(head.id, { head, text }));
    },
    async delete(tenant, ids) {
      const objects = tenants.get(tenant);
      for (const id of ids) objects?.delete(id);
      if (objects?.size === 0) tenants.delete(tenant);
    },
  };
}
