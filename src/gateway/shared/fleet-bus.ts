/** An entry that this process keeps for others to see. */
export interface KeptEntry {
  /** Writes it now instead of with the next heartbeat; resolves when it is written or could not be. */
  refresh(): Promise<void>;
  stop(): void;
}

/** Connects the processes of a fleet. It is not trusted: what it carries is signed with keys of the fleet secret. */
export interface FleetBus {
  /** Messages and entries are lost while it is false. */
  readonly isConnected: boolean;
  /** Writes an entry again and again, so that others can tell that this process lives. */
  keep(name: string, write: () => string): KeptEntry;
  /** Calls back with every entry there is and with each refresh. */
  watch(onEntry: (text: string) => void): void;
  /** Sends to all subscribers that are connected now. */
  publish(topic: string, text: string): void;
  subscribe(topic: string, onText: (text: string) => void): void;
  close(): Promise<void>;
}

/** Time between two refreshes of an entry. */
export const HEARTBEAT_MS = 2000;
/** After this time without a refresh the process of an entry counts as gone. */
export const ENTRY_LIFE_MS = 5 * HEARTBEAT_MS;
