import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'models',
  title: 'Models',
  icon: 'models',
  order: 6,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
