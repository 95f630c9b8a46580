/** A model as a node reports it. */
export interface FleetModel {
  readonly id: string;
  readonly aliases: readonly string[];
  /** Hash of the model file; empty: not loaded, or not known. */
  readonly modelHash: string;
  /** Names of its loaded adapters. */
  readonly adapters: readonly string[];
}

/** What a node reports about itself to gateways of its fleet. */
export interface NodeFleetState {
  readonly version: string;
  readonly models: readonly FleetModel[];
  /** Number of the release of published adapters that it serves; 0: none. */
  readonly release: number;
  /** Requests in progress, from all clients. */
  readonly numRequests: number;
}
