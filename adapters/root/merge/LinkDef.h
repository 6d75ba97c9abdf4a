// SPDX-License-Identifier: Apache-2.0
// The classes that PyROOT and ROOT's prompt can use.
#ifdef __CLING__
#pragma link C++ class TScifMerger;
#pragma link C++ class TScifMerger::Options;
#pragma link C++ class TScifMerger::Counts;
#endif
