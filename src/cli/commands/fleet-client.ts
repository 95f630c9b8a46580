import { RuvLLMError } from '../../core/errors.ts';
import type { ReleaseStore } from '../../gateway/releases/release-store.ts';
import { createNatsReleaseStore } from '../../platform/node/gateway/nats-release-store.ts';
import { deriveFleetKeys, fleetIdOf, type FleetKeys } from '../../server/fleet/fleet-keys.ts';
import { silentLogger } from '../../server/logger.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import { openFleetBus } from './fleet-bus.ts';
import { readFleetSecret } from './fleet-secret.ts';

export interface FleetClient {
  readonly store: ReleaseStore;
  readonly keys: FleetKeys;
  close(): Promise<void>;
}

/** Connects a command with the fleet; a server that is away is an error. */
export async function openFleetClient(context: CommandContext): Promise<FleetClient> {
  const secret = readFleetSecret(context);
  if (secret === null) throw usageError('fleet commands require --fleet-secret', '--fleet-secret');
  const keys = deriveFleetKeys(secret);
  const store = createNatsReleaseStore({ fleet: fleetIdOf(keys), onBeat: async () => connect() });
  let connect = (): void => {};
  let disconnect = (_: string): void => {};
  const connected = new Promise<void>((resolve, reject) => {
    connect = resolve;
    disconnect = (message) => reject(new RuvLLMError('remote_failed', message, { isRetryable: true }));
  });
  connected.catch(() => {}); // awaited below
  const bus = await openFleetBus(context, keys, silentLogger, { attachment: store.attachment, onDisconnected: disconnect }); // prettier-ignore
  if (bus === null) throw usageError('fleet commands require --nats', '--nats');
  try {
    await connected;
  } catch (error) {
    await bus.close();
    throw error;
  }
  return { store, keys, close: bus.close };
}
