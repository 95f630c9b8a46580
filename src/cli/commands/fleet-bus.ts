import { systemClock } from '../../core/clock.ts';
import type { FleetBus } from '../../gateway/shared/fleet-bus.ts';
import { announceNode } from '../../gateway/shared/membership.ts';
import { type BusAttachment, openNatsBus } from '../../platform/node/gateway/nats-bus.ts';
import { type FleetKeys, fleetIdOf } from '../../server/fleet/fleet-keys.ts';
import type { Logger } from '../../server/logger.ts';
import type { CommandContext } from '../command.ts';
import { fillValues } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';
import { ADVERTISE_FLAG, NATS_FLAG } from './nats-flag.ts';
import { readNodeUrl } from './node-url.ts';

export function hasFleetBus({ values, io }: CommandContext): boolean {
  return fillValues([NATS_FLAG], values, io.environment)['--nats'] !== undefined;
}

export interface FleetBusUse {
  /** Keeps published adapters over the same connection. */
  readonly attachment?: BusAttachment;
  onDisconnected?(message: string): void;
}

/** A user of the bus that takes part under the address of this node. */
export interface FleetPart extends FleetBusUse {
  join(url: string): void;
  stop(): void;
}

/** Null: `--nats` was not given. */
export async function openFleetBus(
  { values, io }: CommandContext,
  keys: FleetKeys | null,
  logger: Logger,
  { attachment, onDisconnected }: FleetBusUse = {},
): Promise<FleetBus | null> {
  const url = fillValues([NATS_FLAG], values, io.environment)['--nats'] as string | undefined;
  if (url === undefined) return null;
  if (keys === null) {
    throw usageError(`--nats requires ${FLEET_SECRET_FLAG.name}: messages are signed with it`, '--nats');
  }
  return openNatsBus({
    url,
    fleet: fleetIdOf(keys),
    ...(attachment === undefined ? {} : { attachment }),
    onState(state, message) {
      logger.log(state === 'connected' ? 'info' : 'warn', 'nats', { state, message });
      if (state === 'disconnected') onDisconnected?.(message);
    },
  });
}

export interface AnnouncedNode {
  readonly url: string;
  /** Gateways send nothing more; the connection ends. */
  leave(): Promise<void>;
}

/** Tells the gateways about this node, if `--nats` was given. */
export async function announceServer(
  context: CommandContext,
  keys: FleetKeys | null,
  listeningUrl: string,
  logger: Logger,
  releases: FleetPart | null,
): Promise<AnnouncedNode | null> {
  const url = readAdvertised(context, listeningUrl);
  const bus = await openFleetBus(context, keys, logger, releases ?? {});
  if (bus === null) return null;
  releases?.join(url);
  const announcement = announceNode(bus, keys!, systemClock, url);
  return {
    url,
    async leave() {
      await announcement.leave();
      releases?.stop();
      await bus.close();
    },
  };
}

function readAdvertised(context: CommandContext, listeningUrl: string): string {
  const { values, io } = context;
  const advertised = fillValues([ADVERTISE_FLAG], values, io.environment)['--advertise'] as string | undefined;
  if (advertised === undefined) {
    const { hostname, origin } = new URL(listeningUrl);
    if (hasFleetBus(context) && ['0.0.0.0', '[::]'].includes(hostname)) {
      throw usageError(`gateways cannot reach ${hostname}: pass --advertise URL with the address of this node`, '--advertise'); // prettier-ignore
    }
    return origin;
  }
  if (!hasFleetBus(context)) throw usageError('--advertise requires --nats', '--advertise');
  return readNodeUrl('--advertise', advertised);
}
