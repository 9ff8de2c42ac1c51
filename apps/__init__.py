"""The algorithms that come with sigps: one file each, written with its public names only; a line here for each."""

from sigps.apps.betweenness import Betweenness as Betweenness
from sigps.apps.bfs import BFS as BFS
from sigps.apps.bipartite_matching import BipartiteMatching as BipartiteMatching
from sigps.apps.bitridn import BiTriDN as BiTriDN
from sigps.apps.cdlp import CDLP as CDLP
from sigps.apps.closeness import Closeness as Closeness
from sigps.apps.degree_histogram import DegreeHistogram as DegreeHistogram
from sigps.apps.dependencies import Dependencies as Dependencies
from sigps.apps.distances import Distances as Distances
from sigps.apps.dn_graphs import DNGraphs as DNGraphs
from sigps.apps.edge_triangles import EdgeTriangles as EdgeTriangles
from sigps.apps.ego_net import EgoNet as EgoNet
from sigps.apps.eigenvector import EigenvectorCentrality as EigenvectorCentrality
from sigps.apps.greedy_colouring import GreedyColouring as GreedyColouring
from sigps.apps.harmonic_labels import HarmonicLabels as HarmonicLabels
from sigps.apps.heat_diffusion import HeatDiffusion as HeatDiffusion
from sigps.apps.hits import HITS as HITS
from sigps.apps.katz import Katz as Katz
from sigps.apps.kcore import KCore as KCore
from sigps.apps.khop import KHop as KHop
from sigps.apps.label_groups import LabelGroups as LabelGroups
from sigps.apps.label_propagation import LabelPropagation as LabelPropagation
from sigps.apps.lcc import LCC as LCC
from sigps.apps.longest_path import LongestPath as LongestPath
from sigps.apps.maximal_independent_set import MaximalIndependentSet as MaximalIndependentSet
from sigps.apps.maximal_matching import MaximalMatching as MaximalMatching
from sigps.apps.minimum_spanning_forest import MinimumSpanningForest as MinimumSpanningForest
from sigps.apps.neural_network import NeuralNetwork as NeuralNetwork
from sigps.apps.node2vec_walks import Node2vecWalks as Node2vecWalks
from sigps.apps.out_degree import OutDegree as OutDegree
from sigps.apps.pagerank import PageRank as PageRank
from sigps.apps.personalised_pagerank import PersonalisedPageRank as PersonalisedPageRank
from sigps.apps.radius import Radius as Radius
from sigps.apps.scc import SCC as SCC
from sigps.apps.sssp import SSSP as SSSP
from sigps.apps.streamdn import StreamDN as StreamDN
from sigps.apps.triangles import Triangles as Triangles
from sigps.apps.tridn import TriDN as TriDN
from sigps.apps.wcc import WCC as WCC
from sigps.apps.weighted_labels import WeightedLabels as WeightedLabels

__all__ = sorted(name for name, value in globals().items() if isinstance(value, type))
