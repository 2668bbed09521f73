// The families of code generation; internal to it. Each is a file or a few, and a row of Families() (families.cc).
#pragma once

#include "family/family.h"

namespace quern::codegen {

family::Matched MatchAttention(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerAttention(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchCall(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerCall(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchMatmul(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerMatmul(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchUpdate(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerUpdate(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchSort(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerSort(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchLines(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerLines(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchDeltaRule(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerDeltaRule(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchSelectiveScan(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerSelectiveScan(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchTriangularSolve(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerTriangularSolve(const family::RegionView& view, const family::RegionPlan& plan);

family::Matched MatchMap(const family::RegionView& view);
StatusOr<family::LoweredRegion> LowerMap(const family::RegionView& view, const family::RegionPlan& plan);

}  // namespace quern::codegen
