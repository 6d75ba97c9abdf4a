// SPDX-License-Identifier: Apache-2.0
// What PyROOT and ROOT's prompt know of this library.
#ifdef __CLING__
#pragma link C++ class TScifMerger;
#pragma link C++ class TScifMerger::Options;
#pragma link C++ class TScifMerger::Counts;
#endif
