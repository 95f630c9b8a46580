import type { KernelPackFactory } from '../contract.ts';

/** Bytes that are never touched: without 64-bit addresses, every offset after them would be wrong. */
export const FAR = 2 ** 32;

/** Packs whose memory for callers begins beyond 4 GiB. Memory is committed on first use, so the rest is free. */
export const createFarFactory = (factory: KernelPackFactory): KernelPackFactory => ({
  ...factory,
  async create(options) {
    const pack = await factory.create({ ...options, arenaBytes: options.arenaBytes + FAR });
    pack.arena.allocate(FAR, 'never touched');
    return pack;
  },
});
